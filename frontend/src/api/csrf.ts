import { exactAnswer } from "./exact";

/** The CSRF token of writes; the login and `GET /v1/session` return it. */
let token = "";

export function keepToken(value: string): void {
  token = value;
}

const READ_S_MAX = 30; // timeout of a read

/** fetch with the CSRF token; repeated once if another tab has logged in since. Numbers keep all digits. */
export async function fetchWithToken(request: Request): Promise<Response> {
  return exactAnswer(request.method === "GET" ? await read(request) : await written(request));
}

async function read(request: Request): Promise<Response> {
  return fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(READ_S_MAX * 1000)]) });
}

async function written(request: Request): Promise<Response> {
  const again = request.clone();
  const answer = await fetch(signed(request));
  if (answer.status !== 403 || !(await isStale(answer.clone()))) return answer;
  const session = await fetch("/v1/session");
  if (!session.ok) return answer;
  keepToken(((await session.json()) as { csrf_token: string }).csrf_token);
  return fetch(signed(again));
}

function signed(request: Request): Request {
  request.headers.set("X-CSRFToken", token);
  return request;
}

async function isStale(answer: Response): Promise<boolean> {
  const problem = (await answer.json()) as { code?: string };
  return problem.code === "csrf_failed";
}
