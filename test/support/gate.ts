/** `passed` resolves when the gate is opened. */
export function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}
