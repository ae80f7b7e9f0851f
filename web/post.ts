/** Sends JSON to the server of the page. Rejects with its message. */
export async function post<Result>(path: string, body: object, token: string): Promise<Result> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-docstokg-action": token },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}
