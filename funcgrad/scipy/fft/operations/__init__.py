"""Operations that only ``funcgrad.scipy.fft`` needs, one statement each."""
