/** Until the answer is called. */
export function foldCase(root: string, options?: { readonly killAtRename?: number }): () => void;
