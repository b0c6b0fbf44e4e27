import { render } from 'preact';
import { enter } from './state/session.ts';
import { App } from './view/app.tsx';

const place = document.getElementById('console');
if (place) render(<App />, place);
void enter();
