/** Apart from the checks, so that public types do not need the types of the HTTP framework. */
export interface KnownHosts {
  /** Names beside `localhost` and the one that is listened on. */
  readonly hosts: readonly string[];
  /** As `https://console.example.org`. */
  readonly origins: readonly string[];
  /** Public URL without a trailing slash; null: use the checked `Host`. */
  readonly publicUrl: string | null;
}
