import { type FilePart, showBytes } from '../../conversation/log/parts.ts';
import { inOneLine } from '../../kernel/hidden.ts';

/** Files of messages, as the page shows them. */

/** The types that the page shows: a browser runs nothing in them. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export const isPicture = (mediaType: string): boolean => PICTURES.includes(mediaType);

/** As the sender gave it; it may have any character. */
export const nameOfFile = ({ name, mediaType }: FilePart): string => name || mediaType;

export const factsOf = ({ mediaType, size, width, height }: FilePart): string =>
  [mediaType, showBytes(size), width && height && `${width} × ${height}`].filter((fact) => fact).join(', ');

/** Where a name is not shown, but read. */
export const fileText = (file: FilePart): string => `${inOneLine(nameOfFile(file))} (${factsOf(file)})`;

const LEAST_SIDE = 48;

/** Pixels of one of so many pictures in the thread: its shape. Very narrow ones get a wider frame. */
export function pictureSize({ width = 320, height = 240 }: FilePart, pictures: number) {
  const [mostWidth, mostHeight] = pictures === 1 ? [448, 288] : [240, 144];
  const scale = Math.min(1, mostWidth / width, mostHeight / height);
  const side = (pixels: number) => Math.max(LEAST_SIDE, Math.round(pixels * scale));
  return { width: side(width), height: side(height) };
}

export function heightOf(files: readonly FilePart[]): number {
  const pictures = files.filter(({ mediaType }) => isPicture(mediaType));
  const heights = pictures.map((file) => pictureSize(file, pictures.length).height);
  return Math.ceil(pictures.length / 3) * Math.max(0, ...heights) + (files.length - pictures.length) * 52;
}
