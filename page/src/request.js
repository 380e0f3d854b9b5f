/** Gets JSON; an error has the text of the response, or the status. */
export async function getJSON(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(await reason(response));
  return response.json();
}

/** What a response that is not OK says, in one line. */
export async function reason(response) {
  const text = (await response.text()).trim().split("\n")[0].slice(0, 300);
  if (response.status === 401 || response.status === 403) return "the agent does not accept this session any more; swiftlet ui prints a new link";
  return text || `status ${response.status}`;
}

/** The URL of one of the kubelet's endpoints, beside that of the page. */
export function kubeletURL(endpoint, { namespace, name, container }, query) {
  const path = [endpoint, namespace, name, container].map(encodeURIComponent).join("/");
  return new URL(`../${path}?${new URLSearchParams(query)}`, document.baseURI);
}
