import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { FilePart } from '../../../conversation/index.ts';
import { inOneLine } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import { factsOf, fileText, isPicture, nameOfFile, pictureSize } from '../../model/files.ts';
import { previewOf, saveAs } from '../../state/files.ts';
import { useConversation } from '../../state/kept.ts';
import { attempt, isAway } from '../../state/session.ts';
import { Button, Dialog, LinkButton } from '../parts/controls.tsx';
import { Icon, IconButton } from '../parts/parts.tsx';
import { VisibleText } from '../parts/text.tsx';

/** The files of messages and results. Pictures are shown; everything else is only downloaded, as a browser may run it. */

/** In its conversation, whose members may read it; null: only this page has it yet. */
type From = string | null;

interface Viewed {
  readonly from: From;
  readonly pictures: readonly FilePart[];
  readonly at: number;
}

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
        <li key={place} class={isPicture(file.mediaType) ? 'shown' : ''}>
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

interface OfFile {
  readonly from: From;
  readonly file: FilePart;
}

/** Loaded with the token of the page, when it is near the screen. */
function Picture({ from, file }: OfFile) {
  const frame = useRef<HTMLSpanElement>(null);
  const [address, setAddress] = useState(previewOf(file.sha256));
  const [fault, setFault] = useState('');
  const isLost = isAway.value;
  useEffect(() => {
    if (address !== undefined || from === null || isLost || !frame.current) return;
    const left = new AbortController();
    let made = '';
    setFault('');
    const load = async () => {
      const { content } = await requests.blob(from, file, left.signal);
      made = URL.createObjectURL(content.slice(0, content.size, file.mediaType));
      setAddress(made);
    };
    const near = new IntersectionObserver(([place]) => {
      if (!place?.isIntersecting) return;
      near.disconnect();
      load().catch((error: Error) => !left.signal.aborted && setFault(error.message));
    });
    near.observe(frame.current);
    return () => {
      near.disconnect();
      left.abort();
      URL.revokeObjectURL(made);
    };
  }, [from, isLost]);
  return (
    <span class="picture text-tiny" ref={frame}>
      {address !== undefined && fault === '' && (
        <img src={address} alt="" decoding="async" onError={() => setFault('It is damaged')} />
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
          <LinkButton
            aria-label={`Download ${inOneLine(nameOfFile(file))}`}
            onClick={() => void attempt(async () => saveAs(await requests.blob(from, file)))}
          >
            Download
          </LinkButton>
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
