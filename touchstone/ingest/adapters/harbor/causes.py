"""Whose failure an exception of a Harbor trial is, by Harbor's own table, and what that means for the outcome.

Harbor takes a reward as valid if the agent produced the trajectory on its own: without an exception, at a limit of its
budget, or when it refused. Otherwise (sandbox, model provider, Harbor itself, verifier, cancelled) the reward says
nothing, whichever it is, and the trial is undecided. Two rules differ from the table:

- What an agent can provoke is a failure: a verifier that times out, a sandbox without memory.
- For an exception without a class (`NonZeroAgentExitCodeError`, or an unknown one) Harbor grades the trial but doubts
  the reward. The verifier has judged the agent's work, so its reward counts; without one the trial is undecided.
"""

from collections.abc import Sequence

_SANDBOX = {
    "EnvironmentStartTimeoutError",
    "SandboxBuildFailedError",
    "AgentSetupTimeoutError",
    "HealthcheckError",
    "SSHAccessError",
    "GKEExecStreamClosedError",
    "GKEPodNotFoundError",
    "RuntimeRequestError",
    "AddTestsDirError",
    "DownloadVerifierDirError",
}
_PROVIDER = {
    "ApiError",
    "ApiRateLimitError",
    "ApiInternalServerError",
    "ApiOverloadedError",
    "ApiConnectionClosedError",
    "ApiResponseStalledError",
    "UnknownApiError",
    "NetworkConnectionError",
    "ApiConnectionError",
    "ApiUsageLimitError",
    "RateLimitError",
    "InternalServerError",
    "ServiceUnavailableError",
    "APIConnectionError",
    "APIError",
    "Timeout",
    "BadRequestError",
    "UnprocessableEntityError",
    "UnsupportedParamsError",
    "APIResponseValidationError",
    "BudgetExceededError",
    "AgentAuthenticationError",
    "ModelNotFoundError",
    "ApiProviderResourceNotFoundError",
    "AuthenticationError",
    "PermissionDeniedError",
    "NotFoundError",
}
_HARBOR = {
    "ServiceOperationsUnsupportedError",
    "VercelScopeError",
    "DspyImportError",
    "MissingExtraError",
    "RegradeError",
}
_VERIFIER = {
    "RewardFileNotFoundError",
    "RewardFileEmptyError",
    "VerifierOutputParseError",
}
_STOPPED = {
    "CancelledError",
}
_UNDECIDED = _SANDBOX | _PROVIDER | _HARBOR | _VERIFIER | _STOPPED
# What the agent left runs in the verifier and the sandbox: it may hang the one and exhaust the other's memory.
_PROVOKED = {
    "VerifierTimeoutError": "timeout",
    "MemoryLimitExceededError": "crash",
    "SandboxLikelyOutOfMemoryError": "crash",
}
# The agent's own ends, with the class of the failure.
_OWN = {
    "AgentTimeoutError": "timeout",
    "ContextWindowExceededError": "error",
    "OutputTokenExceededError": "error",
    "ContextLengthExceededError": "error",
    "OutputLengthExceededError": "error",
    "AgentSafetyRefusalError": "refusal",
    "ContentPolicyViolationError": "refusal",
}


def outcome(reward: float | None, exceptions: Sequence[str]) -> tuple[bool | None, str | None]:
    """Whether a trial passed (None: undecided) and its class, from the reward and the exceptions it recorded.

    >>> outcome(1.0, ["AgentTimeoutError"]), outcome(0.0, ["ApiRateLimitError"]), outcome(None, ["AgentTimeoutError"])
    ((True, 'pass'), (None, None), (False, 'timeout'))
    """
    if not _UNDECIDED.isdisjoint(exceptions):
        return None, None
    provoked = next((_PROVOKED[name] for name in exceptions if name in _PROVOKED), None)
    if provoked is not None:
        return False, provoked
    own = next((_OWN[name] for name in exceptions if name in _OWN), None)
    if reward is None:
        is_own = own is not None and all(name in _OWN for name in exceptions)
        return (False, own) if is_own else (None, None)
    if reward >= 1:
        return True, "pass"
    return False, own or ("crash" if exceptions else "fail")
