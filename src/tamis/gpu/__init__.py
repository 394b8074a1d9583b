"""Matching on a GPU: segments lie in the memory of an NVIDIA card. Needs the extra: ``pip install 'tamis[gpu]'``.

    matching           a batch against segments: what the card does, and what is left to the processor   read this first
    match_kernel       the kernel that matches: a block of threads for each event
    record_checks      the record of one survivor
    encode_kernels     kernels that make keys of columns        names_table   the names of attributes, for these kernels
    engine_functions   functions of the engine that kernels use     card_arrays   arrays that kernels read and write
    warp               what the threads of a warp do together   device_code   Python for a card, or for the simulator
    order_kernels      kernels that put matches in the order of events, name them, or keep the heaviest
    card_slots         slots that are still on the card         card          cards, and segments on them
    buffers            what one batch reads and writes there    pinned        memory for results that users keep
    uploads            arrays of a matcher, for all threads     kernel_cache  compiled kernels on disk
    toolkit            numba-cuda, and what is missing without it

Only `card` and `toolkit` are imported where there is no card.
"""

from tamis.gpu.card import Device, devices

__all__ = ["Device", "devices"]
