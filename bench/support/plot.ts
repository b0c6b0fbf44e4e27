/** A small picture of a long life: memory and descriptors over time, each on a scale of its own. */

export interface Sample {
  readonly seconds: number;
  readonly turns: number;
  readonly rssMb: number;
  readonly descriptors: number;
}

const WIDTH = 640;
const HEIGHT = 240;
const MARGIN = 40;

export function plot(samples: readonly Sample[], title: string): string {
  const rss = line(samples, ({ rssMb }) => rssMb, '#1f6feb');
  const descriptors = line(samples, (sample) => sample.descriptors, '#d1242f');
  const seconds = samples.at(-1)?.seconds ?? 0;
  const texts = [
    text(MARGIN, 20, title, '#57606a'),
    text(MARGIN, HEIGHT - 8, `memory, at most ${rss.most} MB`, '#1f6feb'),
    text(240, HEIGHT - 8, `descriptors, at most ${descriptors.most}`, '#d1242f'),
    text(WIDTH - 110, HEIGHT - 8, `${seconds} seconds`, '#57606a'),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>Memory and descriptors over time</title>\n<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
${[rss.svg, descriptors.svg, ...texts].join('\n')}
</svg>
`;
}

function line(samples: readonly Sample[], of: (sample: Sample) => number, colour: string) {
  const most = Math.max(1, ...samples.map(of));
  const seconds = Math.max(1, samples.at(-1)?.seconds ?? 0);
  const points = samples.map((sample) => {
    const x = MARGIN + (sample.seconds / seconds) * (WIDTH - 2 * MARGIN);
    const y = HEIGHT - MARGIN - (of(sample) / most) * (HEIGHT - 2 * MARGIN);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return {
    most,
    svg: `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
  };
}

function text(x: number, y: number, words: string, colour: string): string {
  return `<text x="${x}" y="${y}" fill="${colour}">${words}</text>`;
}
