"""Secrets: declared by the document, resolved before the run, handed to tools, and kept out of everything that is written."""

from penstock.keychain.errors import KeychainError, KeychainProblem, SecretAltered, UnknownEntry, Unresolved
from penstock.keychain.providers import SecretProvider
from penstock.keychain.redaction import MASK, Redaction
from penstock.keychain.resolution import Inputs, missing, resolve
from penstock.keychain.resolved import Keychain
from penstock.keychain.secret import Secret, reveal
from penstock.keychain.store import LocalStore, StoredName
from penstock.keychain.surroundings import Surroundings

__all__ = [
    "MASK",
    "Inputs",
    "Keychain",
    "KeychainError",
    "KeychainProblem",
    "LocalStore",
    "Redaction",
    "Secret",
    "SecretAltered",
    "SecretProvider",
    "StoredName",
    "Surroundings",
    "UnknownEntry",
    "Unresolved",
    "missing",
    "resolve",
    "reveal",
]
