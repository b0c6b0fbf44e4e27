import { render } from 'preact';
import { takeCode } from './api/browser.ts';
import { enter, enterByCode } from './state/session.ts';
import { App } from './view/app.tsx';

/**
 * The console: a page that uses only the public HTTP API.
 *
 * api/    requests, following a conversation, browser storage
 * model/  pure: thread/ (entries, blocks, streamed text, runs), timeline/, list/ (rows, filters, inbox, search), system, formats
 * state/  signals: session, open conversation, list, route, keys
 * view/   components, after the part of the page: app, list/, inbox, conversation/ (header, composer, people, runs), thread/
 *         (messages, calls, approvals, failures), timeline/, answer/ ("why?"), system/, palette; parts/ and markdown/ serve all
 * style/  CSS, one file per part of the page; parts.css has the classes that all share: stacked-1 to -3, abreast, wraps, inline, column, frame, one-line
 *
 * model/ imports neither api/, state/ nor view/; no text of another author reaches the page without escapes.
 */

const code = takeCode();
const place = document.getElementById('console');
place?.replaceChildren(); // what is shown while this loads
if (place) render(<App />, place);
void (code === null ? enter() : enterByCode(code));
addEventListener('hashchange', () => {
  const pasted = takeCode();
  if (pasted !== null) void enterByCode(pasted); // into a tab that was open
});
