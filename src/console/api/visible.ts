/** Acts now, at intervals, and when the page is shown again; never while it is hidden. Runs until the returned function is called. */
export function whileVisible(action: () => unknown, everyMs: number): () => void {
  const act = () => document.visibilityState === 'visible' && void action();
  document.addEventListener('visibilitychange', act);
  const timer = setInterval(act, everyMs);
  act();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', act);
  };
}
