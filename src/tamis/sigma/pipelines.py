"""Processing pipelines of pySigma, which translate rules to the names of an environment."""

from __future__ import annotations

from collections.abc import Sequence

from sigma.exceptions import SigmaError, SigmaPipelineNotFoundError
from sigma.plugins import InstalledSigmaPlugins
from sigma.processing.pipeline import ProcessingPipeline
from yaml import YAMLError

from tamis.errors import FileError, OptionError
from tamis.sigma.documents import reason_of


def pipeline_of(names: Sequence[str]) -> ProcessingPipeline | None:
    """The pipelines of some names or files, joined in the order of their priorities; None without any.

    Raises
    ------
    OptionError
        When there is no such pipeline, or it is made for other backends.
    FileError
        When a file cannot be read as a pipeline.
    """
    if not names:
        return None
    resolver = InstalledSigmaPlugins.autodiscover(
        include_backends=False, include_validators=False
    ).get_pipeline_resolver()
    try:
        for name in names:
            try:
                resolver.resolve([name], "tamis")
            except SigmaPipelineNotFoundError:
                installed = (
                    ", ".join(sorted(resolver.pipelines)) or "none; pip installs them, as pysigma-pipeline-sysmon"
                )
                raise OptionError(
                    f"there is no processing pipeline or file {name!r}. Installed pipelines: {installed}"
                ) from None
            except (YAMLError, TypeError, AttributeError, KeyError, UnicodeDecodeError) as error:
                raise FileError(f"is no processing pipeline: {' '.join(str(error).split())}", path=name) from None
        return resolver.resolve(list(names), "tamis")
    except SigmaError as error:
        raise OptionError(reason_of(error) or str(error)) from None
