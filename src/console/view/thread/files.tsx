import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { FilePart } from '../../../conversation/index.ts';
import { inOneLine } from '../../../kernel/hidden.ts';
import { addressOf, requests } from '../../api/requests.ts';
import { factsOf, fileText, isPicture, nameOfFile, pictureSize } from '../../model/files.ts';
import { previewOf } from '../../state/files.ts';
import { useConversation } from '../../state/kept.ts';
import { isAway } from '../../state/session.ts';
import { Button, Dialog } from '../parts/controls.tsx';
import { Icon, IconButton } from '../parts/parts.tsx';
import { VisibleText } from '../parts/text.tsx';

/** The files of messages and results. Pictures are shown; everything else is only downloaded, as a browser may run it. */

/** In its conversation, whose members may read it; null: only this page has it yet. */
type From = string | null;

type Viewed = { readonly from: From; readonly pictures: readonly FilePart[]; readonly at: number };

/** What the viewer shows; null: it is closed. */
const viewed = signal<Viewed | null>(null);

/** `isLogged`: the daemon gives them to readers of the conversation. */
export function Files({ files, isLogged = true }: { files: readonly FilePart[]; isLogged?: boolean }) {
  const conversation = useConversation();
  if (files.length === 0) return null;
  const from = isLogged ? conversation : null;
  const pictures = files.filter(({ mediaType }) => isPicture(mediaType));
  return (
    <ul class="files" aria-label="Files">
      {files.map((file, place) => (
        <li key={place} class={`abreast text-small ${isPicture(file.mediaType) ? 'shown' : ''}`}>
          {isPicture(file.mediaType) ? (
            <Thumbnail {...{ from, file, pictures }} />
          ) : (
            <>
              <Icon name="file" />
              <Caption {...{ from, file }} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Its place has its size before it is loaded. */
function Thumbnail({ from, file, pictures }: OfFile & { readonly pictures: readonly FilePart[] }) {
  const { width, height } = pictureSize(file, pictures.length);
  return (
    <Button
      class="thumbnail"
      style={{ width: `${width}px`, aspectRatio: `${width} / ${height}` }}
      aria-label={`Show ${fileText(file)}`}
      title={fileText(file)}
      onClick={() => (viewed.value = { from, pictures, at: pictures.indexOf(file) })}
    >
      <Picture key={file.sha256} {...{ from, file }} />
    </Button>
  );
}

type OfFile = { readonly from: From; readonly file: FilePart };

/** Loaded when it is near the screen, and again when the daemon answers again. */
function Picture({ from, file }: OfFile) {
  const [kept] = useState(previewOf(file.sha256));
  const [fault, setFault] = useState('');
  const address = kept ?? (from === null ? '' : addressOf.file(from, file));
  useEffect(() => setFault(''), [isAway.value]);
  const fail = (error?: Error) => setFault(error?.message ?? 'It is damaged');
  const explain = () => (kept === undefined ? requests.check(address).then(() => fail(), fail) : fail());
  return (
    <span class="picture text-tiny">
      {address !== '' && fault === '' && (
        <img src={address} alt="" decoding="async" loading="lazy" onError={explain} />
      )}
      {fault !== '' && <span class="fault">Not shown: {fault}</span>}
    </span>
  );
}

function Caption({ from, file }: OfFile) {
  return (
    <span class="file-words breaks">
      <bdi class="file-name">
        <VisibleText text={nameOfFile(file)} isLine />
      </bdi>
      <span class="muted">
        {factsOf(file)}
        {from !== null && (
          <a
            class="link"
            href={addressOf.file(from, file)}
            download
            aria-label={`Download ${inOneLine(nameOfFile(file))}`}
          >
            Download
          </a>
        )}
      </span>
    </span>
  );
}

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };

/** The pictures of one message, each as large as the window allows. */
export function Viewer() {
  const move = (by: number) => {
    const now = viewed.peek();
    if (now) viewed.value = { ...now, at: (now.at + by + now.pictures.length) % now.pictures.length };
  };
  const hide = () => (viewed.value = null);
  useEffect(() => {
    const onKey = ({ key }: KeyboardEvent) => move(STEPS[key] ?? 0);
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  const { from = null, pictures = [], at = 0 } = viewed.value ?? {};
  const file = pictures[at];
  if (!file) return null;
  return (
    <Dialog class="viewer" label="Pictures" onClose={hide}>
      <div class="viewer-head wraps text-small">
        <IconButton icon="close" aria-label="Close" onClick={hide} />
        {pictures.length > 1 && (
          <>
            <IconButton icon="back" aria-label="Previous picture" onClick={() => move(-1)} />
            <span class="muted">
              {at + 1} of {pictures.length}
            </span>
            <IconButton icon="chevron" aria-label="Next picture" onClick={() => move(1)} />
          </>
        )}
        <div aria-live="polite">
          <Caption {...{ from, file }} />
        </div>
      </div>
      <Picture key={`${at} ${file.sha256}`} {...{ from, file }} />
    </Dialog>
  );
}
