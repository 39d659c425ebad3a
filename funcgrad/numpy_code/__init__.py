"""Run functions written for NumPy, SciPy and ``math`` unchanged, with funcgrad's functions in place of theirs."""

from funcgrad.numpy_code.joined_texts import may_use_text_of_examples
from funcgrad.numpy_code.known import Choice, known_codes
from funcgrad.numpy_code.overwriting import CheckedForWrites
from funcgrad.numpy_code.reachable import DATA_TYPES, deciding
from funcgrad.numpy_code.rebuilding import (
    Rebuilt,
    SelfRebuilding,
    as_written,
    check_refused,
    choice_for_next_call,
    is_as_written,
    is_rebuilt,
    rebuilt_if_known,
    retry_rebuilt,
    run_anywhere,
    run_or_rebuild,
)
from funcgrad.numpy_code.refusals import is_conversion, restore_refusal, take_refusal

__all__ = [
    "DATA_TYPES",
    "Choice",
    "choice_for_next_call",
    "known_codes",
    "CheckedForWrites",
    "Rebuilt",
    "SelfRebuilding",
    "retry_rebuilt",
    "as_written",
    "run_or_rebuild",
    "check_refused",
    "deciding",
    "is_as_written",
    "is_conversion",
    "is_rebuilt",
    "may_use_text_of_examples",
    "restore_refusal",
    "rebuilt_if_known",
    "run_anywhere",
    "take_refusal",
]
