import type { ComponentChildren } from 'preact';
import { showBytes } from '../../../conversation/log/parts.ts';
import { inOneLine } from '../../../kernel/hidden.ts';
import { type ChosenFile, choose, filesFor, previewOf, progress, remove } from '../../state/files.ts';
import { focusOn } from '../../state/keys.ts';
import { QuietButton } from '../parts/controls.tsx';
import { Icon } from '../parts/parts.tsx';
import { VisibleText } from '../parts/text.tsx';

/** The files of a message that is not sent yet, with their uploads. */
export function ChosenFiles({ of }: { readonly of: string }) {
  const files = filesFor(of);
  return (
    <>
      {files.length > 0 && (
        <ul class="chosen-files" aria-label="Files to send">
          {files.map((file) => (
            <Chosen key={file.id} file={file} />
          ))}
        </ul>
      )}
      <p class="unseen" role="status">
        {files.map((file) => `${inOneLine(file.name)}: ${stateOf(file)}. `)}
      </p>
    </>
  );
}

function Chosen({ file }: { readonly file: ChosenFile }) {
  const { id, of, name, size, state } = file;
  const label = inOneLine(name);
  const share = progress.value?.id === id ? progress.value.share : 0;
  return (
    <li class={state.kind}>
      {previewOf(id) ? <img src={previewOf(id)} alt="" /> : <Icon name="file" />}
      <span class="file-words">
        <bdi class="file-name" title={label}>
          <VisibleText text={name} isLine />
        </bdi>
        <span class="muted">
          {showBytes(size)}
          {state.kind !== 'uploaded' && `, ${share > 0 ? `${Math.round(share * 100)} %` : stateOf(file)}`}
        </span>
        {state.kind === 'uploading' && <progress aria-label={`Upload of ${label}`} value={share} />}
      </span>
      {state.kind === 'lost' && (
        <FilePicker label={`Choose ${label} again`} onChoose={(content) => choose(of, content, id)}>
          Choose again
        </FilePicker>
      )}
      <QuietButton
        aria-label={`Remove ${label}`}
        onClick={() => {
          remove(id);
          focusOn('composer');
        }}
      >
        <Icon name="close" />
      </QuietButton>
    </li>
  );
}

function stateOf({ state }: ChosenFile): string {
  if (state.kind === 'uploading') return state.reason ?? 'is being uploaded';
  if (state.kind === 'lost') return 'lost with the reload of the page';
  return state.kind === 'refused' ? state.reason : state.kind;
}

interface FilePickerProps {
  readonly label: string;
  readonly onChoose: (file: File) => void;
  readonly multiple?: boolean;
  readonly children: ComponentChildren;
}

export function FilePicker({ label, onChoose, multiple, children }: FilePickerProps) {
  return (
    <label class="button quiet" title={label}>
      {children}
      <input
        type="file"
        class="unseen"
        aria-label={label}
        multiple={multiple}
        onChange={({ currentTarget }) => {
          for (const file of currentTarget.files ?? []) onChoose(file);
          currentTarget.value = ''; // the same file can be chosen again
        }}
      />
    </label>
  );
}
