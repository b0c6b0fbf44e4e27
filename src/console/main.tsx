import { render } from 'preact';
import { takeToken } from './api/session.ts';
import { enter } from './state/session.ts';
import { App } from './view/app.tsx';

takeToken();
const place = document.getElementById('console');
if (place) render(<App />, place);
void enter();
addEventListener('hashchange', () => {
  if (takeToken()) void enter(); // pasted into a tab that was open
});
