"""The HTTP service of a run: an endpoint is a method or a value of the service, and a schema."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.routing import Route

from getd.errors import FactError
from getd.runs.opened import OpenedRun
from getd.serving.middleware import Guard, ServeSettings, problem
from getd.serving.request_metrics import CONTENT_TYPE
from getd.serving.schemas import MapPoint, Overview, PredictResponse, Problem, RelationInfo
from getd.serving.service import VERSION, Service
from getd.visible import lower_first

PROBLEMS = {
    400: "The body is not what it says it is.",
    401: "The token is missing or wrong.",
    413: "The body is too large.",
    422: "A name is unknown, or the request does not fit the schema.",
    503: "It took too long, or the service is ending.",
}


def create_app(run: OpenedRun, settings: ServeSettings) -> FastAPI:
    """Create the service of a run."""
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
        responses={
            code: {"model": Problem, "description": text} for code, text in PROBLEMS.items()
        },
    )
    app.add_middleware(
        Guard, settings=settings, count=service.metrics.count, shortcut=service.shortcut
    )
    app.exception_handler(RequestValidationError)(_invalid_request)
    app.exception_handler(FactError)(_unknown_name)

    public = _public_router(service)
    guarded = _guarded_router(service)
    app.include_router(public)
    app.include_router(guarded, dependencies=[Depends(service.check_token)])

    routes = [*app.routes, *public.routes, *guarded.routes]
    service.metrics.paths = {route.path for route in routes if isinstance(route, Route)}
    return app


def _public_router(service: Service) -> APIRouter:
    """Route what needs no token: the pages, and whether the service is up."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> Overview:
        """Whether the service is up, and what it serves."""
        return service.overview

    @router.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return static("page.html")

    @router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> str:
        return static("docs.html")

    return router


def _guarded_router(service: Service) -> APIRouter:
    """Route what needs the token, if the service has one."""
    router = APIRouter()

    router.post("/predict", response_model=PredictResponse)(service.predict)
    router.post("/why")(service.why)
    router.post("/score")(service.score)
    router.get("/entities")(service.entities)

    @router.get("/relations")
    async def relations() -> list[RelationInfo]:
        """List all relations, those of most facts first."""
        return service.relations

    @router.get("/map")
    async def entity_map() -> list[MapPoint]:
        """Return entities on a plane, similar ones near each other."""
        return service.entity_map

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return numbers for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return router


def static(name: str) -> str:
    """Read a file of the page."""
    return (files("getd.serving") / "static" / name).read_text(encoding="utf-8")


async def _unknown_name(request: Request, error: Exception) -> JSONResponse:
    return problem(422, str(error))


async def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Say the first thing that is wrong with a request, in one line."""
    assert isinstance(error, RequestValidationError)
    mistake = error.errors()[0]
    message = mistake["msg"]
    field = ".".join(str(part) for part in mistake["loc"] if part != "body")
    if field:
        message = f"{field}: {lower_first(message)}"
    return problem(422, message)
