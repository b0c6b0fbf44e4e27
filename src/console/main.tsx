import { render } from 'preact';
import { takeCode } from './api/session.ts';
import { enter, enterByCode } from './state/session.ts';
import { App } from './view/app.tsx';

const code = takeCode();
const place = document.getElementById('console');
if (place) render(<App />, place);
void (code === null ? enter() : enterByCode(code));
addEventListener('hashchange', () => {
  const pasted = takeCode();
  if (pasted !== null) void enterByCode(pasted); // into a tab that was open
});
