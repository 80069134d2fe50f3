"""Entities on a plane, similar ones near each other."""

import numpy as np
import torch

from getd.arrays import Ids
from getd.models.base import DotProductModel
from getd.runs.opened import OpenedRun
from getd.serving.schemas import MapPoint

MAX_POINTS = 4000  # entities on the map: those of most facts


def entity_map(run: OpenedRun, degree: Ids) -> list[MapPoint]:
    """Project the vectors of entities on the two directions in which they differ most.

    ``degree`` is the number of facts of each entity. Models without vectors have no map.
    """
    model = run.model.bare
    if not isinstance(model, DotProductModel):
        return []

    ids = np.sort(np.argsort(-degree, kind="stable")[:MAX_POINTS])
    with torch.no_grad():
        table = model.candidates(0)[torch.tensor(ids)].double()
    table = torch.nn.functional.normalize(table, dim=1)
    table = table - table.mean(dim=0)
    _, _, directions = torch.linalg.svd(table, full_matrices=False)
    plane = (table @ directions[:2].T).tolist()

    points = []
    for name, vector, facts in zip(run.kb.entities.decode(ids), plane, degree[ids], strict=True):
        points.append(MapPoint(entity=name, x=vector[0], y=vector[-1], facts=int(facts)))
    return points
