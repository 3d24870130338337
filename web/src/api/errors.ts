/** One thing that is wrong, in a document (`file`, `line`, `column`) or in a request (`where`). */
export interface Problem {
  message: string;
  where?: string | null;
  code?: string | null;
  severity?: string | null;
  file?: string | null;
  line?: number | null;
  column?: number | null;
  end_column?: number | null;
  hint?: string | null;
  [more: string]: unknown;
}

/** An answer of the server other than the one that was asked for: `{"error": {code, message, hint, problems}}`. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  readonly problems: Problem[];

  constructor(status: number, code: string, message: string, hint: string | null = null, problems: Problem[] = []) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.problems = problems;
  }

  /** Reads the body of an answer; a proxy in between may have sent something that is not ours. */
  static of(status: number, body: unknown): ApiError {
    const error = (body as { error?: Record<string, unknown> } | null | undefined)?.error;
    if (error === undefined || typeof error.message !== "string") {
      return new ApiError(status, "unknown", `the server answered with status ${status}`);
    }
    return new ApiError(
      status,
      typeof error.code === "string" ? error.code : "unknown",
      error.message,
      typeof error.hint === "string" ? error.hint : null,
      Array.isArray(error.problems) ? (error.problems as Problem[]) : [],
    );
  }
}

/** There was no answer: the server is not there, or the network is not. */
export class Unreachable extends Error {
  constructor() {
    super("the server does not answer");
    this.name = "Unreachable";
  }
}
