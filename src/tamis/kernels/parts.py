"""How helpers of kernels are compiled: only as far as the kernel that calls them needs.

Numba compiles every function as if Python called it. It writes two wrappers. It optimises the function together with everything
that it calls, and makes machine code. But a helper ends up inside the kernel that calls it, and is optimised again there.
Measured: of the 66 seconds of the first match, these three steps on helpers took 36.

A *part* skips these steps: its code is kept as LLVM has read it, and linked into its caller. For this, two internal classes of
Numba are replaced: the pass that lowers a function, and the library that holds its code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba.core import codegen, compiler, typed_passes
from numba.core.compiler_machinery import register_pass
from numba.extending import typeof_impl

from tamis.kernels.background import checkpoint
from tamis.kernels.notice import notice

# Internal classes of Numba, which have no useful types.
_Library: Any = codegen.JITCodeLibrary
_Lowering: Any = typed_passes.NativeLowering
_Compiler: Any = compiler.CompilerBase
_default_passes: Any = compiler.DefaultPassBuilder
_njit: Any = functools.partial(numba.njit, error_model="numpy")


class _KernelLibrary(_Library):
    """Code that is optimised once, when it is complete. Numba would also optimise each function before."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout


class _PartLibrary(_KernelLibrary):
    """Code that is only linked into other code."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _between_steps() -> None:
    """Called before each function. A kernel takes seconds to compile, one function some tenths."""
    notice.tick()
    checkpoint()


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(_Lowering):
    """Lowers a function into a `_KernelLibrary`."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        _between_steps()
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    """Lowers a function into a `_PartLibrary`, and registers it for its callers."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        _between_steps()
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        # Numba identifies a compiled function by its entry from Python, which must be a built-in function. Nobody calls it.
        entry: Any = {}.popitem
        state.targetctx.insert_user_function(entry, state["cr"].fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = state["cr"]._replace(cfunc=entry)
        return True


class _KernelCompiler(_Compiler):
    """Numba's own passes with another pass at the end."""

    lowering: Any = _KernelLowering

    def define_pipelines(self) -> list[Any]:
        passes = _default_passes.define_nopython_pipeline(self.state)
        passes.passes = [(self.lowering if made is _Lowering else made, described) for made, described in passes.passes]
        passes.finalize()
        return [passes]


class _PartCompiler(_KernelCompiler):
    lowering = _PartLowering


def compiled_kernel(function: Callable[..., Any], nogil: bool, is_entry: bool, **options: Any) -> Any:
    """A function that Python calls. If it is an entry, other kernels call it by its address."""
    return _njit(nogil=nogil, no_cfunc_wrapper=not is_entry, pipeline_class=_KernelCompiler, **options)(function)


def compiled_part(function: Callable[..., Any], **options: Any) -> Any:
    """A function that only kernels can call."""
    return _njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_PartCompiler, **options)(
        function
    )


def call_as_part(dispatcher: Any, part: Any) -> None:
    """Make kernels that call a compiled function call its part instead."""
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload


class Helper:
    """A function that is a part for kernels, and the function itself for Python."""

    def __init__(self, function: Callable[..., Any], part: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.part = part
        self.targetoptions = part.targetoptions

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


@typeof_impl.register(Helper)
def _type_of_helper(helper: Helper, context: Any) -> Any:
    return helper.part._numba_type_
