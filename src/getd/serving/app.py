"""The HTTP service of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from getd.errors import FactError
from getd.runs.opened import OpenedRun
from getd.serving.middleware import Guard, ServeSettings, problem
from getd.serving.schemas import (
    FoundRelation,
    MapPoint,
    Overview,
    PredictRequest,
    PredictResponse,
    Problem,
    ScoreRequest,
    ScoreResponse,
    WhyRequest,
    WhyResponse,
)
from getd.serving.service import VERSION, Service

MOST_TYPED = 100  # letters of a search
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": told}
    for code, told in (
        (400, "The body is not what it says it is."),
        (401, "The token is missing or wrong."),
        (413, "The body is too large."),
        (422, "A name is unknown, or the request does not fit the schema."),
        (503, "It took too long, or the service is ending."),
    )
}


def create_app(run: OpenedRun, settings: ServeSettings | None = None) -> FastAPI:
    """The service of a run."""
    settings = settings or ServeSettings()
    service = Service(run, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="getd",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=PROBLEMS,
    )
    app.add_middleware(Guard, settings=settings, count=service.count_request)
    app.exception_handler(RequestValidationError)(_explain)
    app.exception_handler(FactError)(_refuse)
    allowed = [Depends(service.check_token)]
    app.include_router(_questions(service), dependencies=allowed)
    app.include_router(_knowledge(service), dependencies=allowed)

    @app.get("/health")
    async def health() -> Overview:
        """Whether the service is well, and what it serves."""
        return service.overview

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return static("page.html")

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> str:
        return static("docs.html")

    return app


def _questions(service: Service) -> APIRouter:
    """What is asked of the model."""
    router = APIRouter()

    @router.post("/predict")
    async def predict(asked: PredictRequest) -> PredictResponse:
        """Answer questions."""
        return await service.predict(asked)

    @router.post("/why")
    async def why(asked: WhyRequest) -> WhyResponse:
        """Tell the training facts that support an answer most."""
        return await service.why(asked)

    @router.post("/score")
    async def score(asked: ScoreRequest) -> ScoreResponse:
        """Rate facts."""
        return await service.score(asked)

    return router


def _knowledge(service: Service) -> APIRouter:
    """What the knowledge base holds, and numbers."""
    router = APIRouter()

    @router.get("/entities")
    async def entities(
        q: Annotated[str, Query(max_length=MOST_TYPED)] = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> list[str]:
        """Entities that begin with a text, hold it, or resemble it."""
        return await service.find(q, limit)

    @router.get("/relations")
    async def relations() -> list[FoundRelation]:
        """All relations, those of most facts first."""
        return service.relations

    @router.get("/map")
    async def entity_map() -> list[MapPoint]:
        """Entities on a plane: alike is near."""
        return service.points

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    return router


def static(name: str) -> str:
    """A file of the page."""
    return (files("getd.serving") / "static" / name).read_text(encoding="utf-8")


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    return problem(422, str(error))


async def _explain(request: Request, error: Exception) -> JSONResponse:
    """The first thing that is wrong with a request, in one line."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return problem(
        422, f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}" if place else first["msg"]
    )
