"""Operations that only the functions of ``funcgrad.nn`` need, one statement each."""
