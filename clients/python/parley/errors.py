class ParleyError(Exception):
    """`code` is for programs (docs/reference/errors.md), `hint` says what to do next."""

    def __init__(self, code, message, hint=None):
        super().__init__(f"{code}: {message}" + (f" ({hint})" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint
