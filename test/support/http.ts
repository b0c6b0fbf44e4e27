/** The options of `fetch` for a POST with a JSON body. */
export const posting = (body: object, headers: Readonly<Record<string, string>> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});
