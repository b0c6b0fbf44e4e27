/** What the file store tells the operator, beside what it throws. */
export type StoreEvent =
  | {
      readonly type: 'torn-tail-cut';
      readonly conversation: string;
      readonly bytes: number;
      readonly keptIn: string;
    }
  | {
      readonly type: 'log-quarantined';
      readonly conversation: string;
      readonly line: number;
      readonly reason: string;
      /** The note left beside the log; null when even that could not be written. */
      readonly note: string | null;
    }
  /** A projection could not be read; it starts anew and the old file is kept. */
  | {
      readonly type: 'projection-set-aside';
      readonly file: string;
      readonly keptIn: string;
      readonly reason: string;
    }
  /** A newer minor version of Parley wrote here: what this one does not know is kept and ignored. */
  | {
      readonly type: 'format-newer';
      readonly file: string;
      readonly stored: string;
      readonly own: string;
      readonly writtenBy: string;
    }
  /** This folder of the layout before is not read: the conversation has another one. */
  | { readonly type: 'folder-taken'; readonly conversation: string; readonly folder: string }
  /** An older version kept this conversation in the folder of another one, whose name differs in capitals only. */
  | { readonly type: 'folder-shared'; readonly conversation: string; readonly folder: string }
  /** A projection could not be saved; it is tried again. */
  | { readonly type: 'projection-not-saved'; readonly file: string; readonly reason: string };

export type StoreLog = (event: StoreEvent) => void;
