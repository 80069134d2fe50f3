"""An opened run, ready to answer: what questions, explanations and ratings need is built once."""

from collections.abc import Sequence
from functools import cached_property

from getd.calibration.slot_fit import SlotFit
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.prediction.answer import Answer, Answerer
from getd.prediction.beam import answer_jointly
from getd.prediction.explain import Explainer, Explanation
from getd.prediction.question import Question, fill_question
from getd.prediction.rate import Rating, rate
from getd.runs.opened import OpenedRun


class Predictor:
    """Answers questions of a run, explains answers and rates facts."""

    def __init__(self, run: OpenedRun) -> None:
        self.run = run
        self.kb = run.kb

    @cached_property
    def known(self) -> KnownAnswers:
        """The known answers of all splits."""
        return self.kb.known()

    @cached_property
    def slot_fit(self) -> SlotFit:
        """How well entities fit the positions of relations."""
        return SlotFit(self.kb)

    @cached_property
    def explainer(self) -> Explainer:
        """Finds the training facts behind an answer."""
        return Explainer(self.run.model.bare, self.kb)

    @property
    def answerer(self) -> Answerer:
        """The model and the calibration as they are now."""
        run = self.run
        return Answerer(run.model, self.kb, self.known, run.calibration, self.slot_fit)

    def prepare(self) -> None:
        """Build everything now, so that the first question does not wait for it."""
        _ = self.known, self.slot_fit, self.explainer

    def answer(
        self, questions: Sequence[Question], top: int, include_known: bool
    ) -> list[list[Answer]]:
        answerer = self.answerer
        single = [question for question in questions if len(question.open) < 2]
        answered = iter(answerer.answer(single, top, include_known))

        answers = []
        for question in questions:
            if len(question.open) < 2:
                answers.append(next(answered))
            else:
                answers.append(answer_jointly(answerer, question, top, include_known))
        return answers

    def explain(self, question: Question, answer: Answer, top: int = 3) -> list[Explanation]:
        """Return the training facts that support each entity of an answer most."""
        return self.explain_fact(fill_question(self.kb, question, answer.names), question.open, top)

    def explain_fact(
        self, fact: Facts, positions: Sequence[int], top: int = 3
    ) -> list[Explanation]:
        """Return the training facts that support the entities at some positions of one fact."""
        return [self.explainer.explain(fact, position, top) for position in positions]

    def rate(self, facts: Facts) -> list[Rating]:
        """Rate facts of one arity."""
        return rate(self.answerer, facts)
