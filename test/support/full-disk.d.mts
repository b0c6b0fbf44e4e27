/** Until the returned function is called. */
export function fillWhile(flag: string): () => void;
