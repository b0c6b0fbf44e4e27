/** Until the returned function is called. */
export function foldCase(root: string, options?: { readonly killAtRename?: number }): () => void;
