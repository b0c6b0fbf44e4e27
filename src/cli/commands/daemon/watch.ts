import { watch } from 'node:fs';

/** Editors write a file in several steps. */
const QUIET_MS = 200;

/** Calls back after files below the folder changed and none has for a moment. Returns how to stop. */
export function watchFolder(
  folder: string,
  onChange: () => void,
  onFault: (error: Error) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { recursive: true }, () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  });
  watcher.on('error', onFault);
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
