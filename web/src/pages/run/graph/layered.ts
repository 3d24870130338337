/**
 * A layered drawing of a small graph, at once and without ELK: layers by longest path, order by barycentres, places by least squares,
 * links with right angles. Boxes are laid out by themselves first, and are then one thing in what is around them.
 *
 * `u` runs in the direction of the drawing and `v` across it.
 */
import type { Label, Layout, Plan, PlanItem, PlanLink, Point, Rect, Route } from "./layout";
import { BOX_HEAD, BOX_PAD } from "./measure";

const APART = 26;
const APART_FROM_LINE = 16;
const TRACK = 11;
const PORTS_APART = 18;

interface Place {
  /** Null: a link passes by here. */
  item: PlanItem | null;
  layer: number;
  /** Half of its size across. */
  half: number;
  u: number;
  length: number;
  v: number;
  before: number[];
  after: number[];
}

interface Chain {
  link: PlanLink;
  isReversed: boolean;
  /** Places from layer to layer. */
  places: number[];
}

interface Inside {
  width: number;
  height: number;
  rects: Map<string, Rect>;
  routes: Map<string, Route>;
}

export function layered(plan: Plan): Layout {
  const around = new Map(plan.items.map((item) => [item.id, item.box]));
  const inside = (container: string | null): Inside => {
    const rects = new Map<string, Rect>();
    const routes = new Map<string, Route>();
    const deeper = new Map<string, Inside>();
    const items = plan.items
      .filter((item) => item.box === container)
      .map((item) => {
        if (!item.isBox) return item;
        const within = inside(item.id);
        deeper.set(item.id, within);
        return {
          ...item,
          width: Math.max(item.width, within.width + 2 * BOX_PAD),
          height: Math.max(item.height, within.height + BOX_HEAD + 2 * BOX_PAD),
        };
      });
    const here = new Set(items.map((item) => item.id));
    const lifted = plan.links.flatMap((link) => {
      const source = liftedTo(here, around, link.source);
      const target = liftedTo(here, around, link.target);
      if (source === null || target === null || (source === target && link.source !== link.target)) return [];
      return [{ ...link, source, target }];
    });
    const drawn = drawLayers(items, lifted, plan.direction === "right");
    for (const [id, rect] of drawn.rects) {
      rects.set(id, rect);
      const within = deeper.get(id);
      if (within === undefined) continue;
      const dx = rect.x + BOX_PAD;
      const dy = rect.y + BOX_HEAD + BOX_PAD;
      for (const [inner, at] of within.rects) rects.set(inner, { ...at, x: at.x + dx, y: at.y + dy });
      for (const [link, route] of within.routes) routes.set(link, moved(route, dx, dy));
    }
    for (const [link, route] of drawn.routes) routes.set(link, route);
    return { width: drawn.width, height: drawn.height, rects, routes };
  };

  const whole = inside(null);
  const cards: Record<string, Rect> = {};
  const boxes: Record<string, Rect> = {};
  for (const item of plan.items) {
    const rect = whole.rects.get(item.id);
    if (rect !== undefined) (item.isBox ? boxes : cards)[item.id] = rect;
  }
  const routes: Record<string, Route> = {};
  for (const link of plan.links) {
    const route = whole.routes.get(link.id);
    if (route !== undefined)
      routes[link.id] = reaching(route, cards[link.source], cards[link.target], plan.direction === "right");
  }
  return { width: whole.width, height: whole.height, cards, boxes, routes };
}

function liftedTo(here: ReadonlySet<string>, around: ReadonlyMap<string, string | null>, id: string): string | null {
  for (let at: string | null = id; at !== null; at = around.get(at) ?? null) if (here.has(at)) return at;
  return null;
}

function moved(route: Route, dx: number, dy: number): Route {
  return {
    points: route.points.map(([x, y]) => [x + dx, y + dy] as const),
    label: { ...route.label, x: route.label.x + dx, y: route.label.y + dy },
  };
}

/** A route that ends at the wall of a box goes on to what lies in it. */
function reaching(route: Route, source: Rect | undefined, target: Rect | undefined, isRight: boolean): Route {
  const points = [...route.points];
  const first = points[0];
  const last = points.at(-1);
  if (source !== undefined && first !== undefined && !touches(source, first)) {
    const end: Point = isRight
      ? [source.x + source.width, source.y + source.height / 2]
      : [source.x + source.width / 2, source.y + source.height];
    points.unshift(end, isRight ? [first[0], end[1]] : [end[0], first[1]]);
  }
  if (target !== undefined && last !== undefined && !touches(target, last)) {
    const end: Point = isRight ? [target.x, target.y + target.height / 2] : [target.x + target.width / 2, target.y];
    points.push(isRight ? [last[0], end[1]] : [end[0], last[1]], end);
  }
  return { points, label: route.label };
}

function touches(rect: Rect, [x, y]: Point): boolean {
  return x >= rect.x - 1 && x <= rect.x + rect.width + 1 && y >= rect.y - 1 && y <= rect.y + rect.height + 1;
}

function drawLayers(items: readonly PlanItem[], links: readonly PlanLink[], isRight: boolean): Inside {
  const lengthOf = (item: PlanItem) => (isRight ? item.width : item.height);
  const acrossOf = (item: PlanItem) => (isRight ? item.height : item.width);
  const places: Place[] = items.map((item) => ({
    item,
    layer: 0,
    half: acrossOf(item) / 2,
    u: 0,
    length: lengthOf(item),
    v: 0,
    before: [],
    after: [],
  }));
  const index = new Map(items.map((item, at) => [item.id, at]));
  const ends = links.map((link) => [index.get(link.source) as number, index.get(link.target) as number] as const);
  const reversed = backward(places.length, ends);
  intoLayers(places, ends, reversed);

  const chains = links.flatMap((link, at): Chain[] => {
    const [a, b] = ends[at] as readonly [number, number];
    if (a === b) return [];
    const isReversed = reversed.has(at);
    const [from, to] = isReversed ? [b, a] : [a, b];
    const chain = [from];
    for (let layer = (places[from] as Place).layer + 1; layer < (places[to] as Place).layer; layer += 1) {
      places.push({ item: null, layer, half: 1, u: 0, length: 0, v: 0, before: [], after: [] });
      chain.push(places.length - 1);
    }
    chain.push(to);
    for (let step = 1; step < chain.length; step += 1) {
      (places[chain[step - 1] as number] as Place).after.push(chain[step] as number);
      (places[chain[step] as number] as Place).before.push(chain[step - 1] as number);
    }
    return [{ link, isReversed, places: chain }];
  });

  const layers = ordered(places);
  spread(places, layers);
  return routed(places, layers, chains, links, isRight, items);
}

/** The links that are turned round, so that no way leads back. */
function backward(count: number, ends: readonly (readonly [number, number])[]): ReadonlySet<number> {
  const out: number[][] = Array.from({ length: count }, () => []);
  ends.forEach(([from], link) => {
    (out[from] as number[]).push(link);
  });
  const found = new Set<number>();
  const state = new Uint8Array(count);
  const visit = (at: number) => {
    const stack: [number, number][] = [[at, 0]];
    state[at] = 1;
    while (stack.length > 0) {
      const top = stack.at(-1) as [number, number];
      const link = (out[top[0]] as number[])[top[1]];
      if (link === undefined) {
        state[top[0]] = 2;
        stack.pop();
        continue;
      }
      top[1] += 1;
      const to = (ends[link] as readonly [number, number])[1];
      if (state[to] === 1) found.add(link);
      else if (state[to] === 0) {
        state[to] = 1;
        stack.push([to, 0]);
      }
    }
  };
  // Those that nothing leads to come first: what they lead to is then before what leads back.
  const into = new Uint32Array(count);
  for (const [from, to] of ends) if (from !== to) into[to] = (into[to] ?? 0) + 1;
  for (let at = 0; at < count; at += 1) if (into[at] === 0 && state[at] === 0) visit(at);
  for (let at = 0; at < count; at += 1) if (state[at] === 0) visit(at);
  return found;
}

function intoLayers(places: Place[], ends: readonly (readonly [number, number])[], reversed: ReadonlySet<number>) {
  const forward = ends.flatMap(([a, b], at) =>
    a === b ? [] : [reversed.has(at) ? ([b, a] as const) : ([a, b] as const)],
  );
  // Longest path: as often as there are layers at most.
  for (let isChanged = true, rounds = 0; isChanged && rounds <= places.length; rounds += 1) {
    isChanged = false;
    for (const [from, to] of forward) {
      const wanted = (places[from] as Place).layer + 1;
      if ((places[to] as Place).layer < wanted) {
        (places[to] as Place).layer = wanted;
        isChanged = true;
      }
    }
  }
  // What nothing leads to stands right before what it leads to.
  const hasBefore = new Set(forward.map(([, to]) => to));
  places.forEach((place, at) => {
    if (hasBefore.has(at)) return;
    const next = forward.flatMap(([from, to]) => (from === at ? [(places[to] as Place).layer] : []));
    if (next.length > 0) place.layer = Math.min(...next) - 1;
  });
}

/** The places of each layer in an order with few crossings. */
function ordered(places: Place[]): number[][] {
  const count = places.reduce((most, place) => Math.max(most, place.layer + 1), 0);
  let layers: number[][] = Array.from({ length: count }, () => []);
  // Depth first from the top: what belongs together begins side by side.
  const seen = new Uint8Array(places.length);
  const visit = (at: number) => {
    if (seen[at] === 1) return;
    seen[at] = 1;
    (layers[(places[at] as Place).layer] as number[]).push(at);
    for (const next of (places[at] as Place).after) visit(next);
  };
  places.forEach((place, at) => {
    if (place.before.length === 0) visit(at);
  });
  places.forEach((_, at) => {
    visit(at);
  });
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(places, best);
  for (let sweep = 0; sweep < 10 && fewest > 0; sweep += 1) {
    const isDown = sweep % 2 === 0;
    layers = layers.map((layer) => [...layer]);
    for (let step = 1; step < count; step += 1) {
      const at = isDown ? step : count - 1 - step;
      const fixed = positions(layers[isDown ? at - 1 : at + 1] as number[]);
      const layer = layers[at] as number[];
      const weight = new Map(
        layer.map((one, position) => {
          const near = isDown ? (places[one] as Place).before : (places[one] as Place).after;
          const sum = near.reduce((total, other) => total + (fixed.get(other) ?? 0), 0);
          return [one, near.length === 0 ? position : sum / near.length];
        }),
      );
      layer.sort((one, other) => (weight.get(one) as number) - (weight.get(other) as number));
    }
    const now = crossings(places, layers);
    if (now < fewest) {
      fewest = now;
      best = layers.map((layer) => [...layer]);
    }
  }
  return best;
}

const positions = (layer: readonly number[]) => new Map(layer.map((one, at) => [one, at]));

function crossings(places: readonly Place[], layers: readonly (readonly number[])[]): number {
  let found = 0;
  for (let at = 1; at < layers.length; at += 1) {
    const here = positions(layers[at] as number[]);
    const lines: [number, number][] = [];
    (layers[at - 1] as number[]).forEach((one, position) => {
      for (const next of (places[one] as Place).after) lines.push([position, here.get(next) ?? 0]);
    });
    for (let one = 0; one < lines.length; one += 1) {
      for (let other = one + 1; other < lines.length; other += 1) {
        const [a, b] = lines[one] as [number, number];
        const [c, d] = lines[other] as [number, number];
        if ((a - c) * (b - d) < 0) found += 1;
      }
    }
  }
  return found;
}

/** Places across: as near to what they are linked with as their neighbours allow. */
function spread(places: Place[], layers: readonly (readonly number[])[]) {
  for (const layer of layers) {
    let v = 0;
    layer.forEach((at, position) => {
      const place = places[at] as Place;
      if (position > 0) v += gapBetween(places[layer[position - 1] as number] as Place, place);
      place.v = v;
    });
    for (const at of layer) (places[at] as Place).v -= v / 2;
  }
  for (let round = 0; round < 16; round += 1) {
    const isDown = round % 2 === 0;
    const isLast = round >= 14;
    const order = isDown ? layers : [...layers].reverse();
    for (const layer of order) {
      const wanted = layer.map((at) => {
        const place = places[at] as Place;
        const near = isLast ? [...place.before, ...place.after] : isDown ? place.before : place.after;
        return near.length === 0 ? place.v : near.reduce((sum, one) => sum + (places[one] as Place).v, 0) / near.length;
      });
      const weights = layer.map((at) => ((places[at] as Place).item === null ? 4 : 1));
      const apart = layer.map((at, position) =>
        position === 0 ? 0 : gapBetween(places[layer[position - 1] as number] as Place, places[at] as Place),
      );
      nearest(wanted, apart, weights).forEach((v, position) => {
        (places[layer[position] as number] as Place).v = v;
      });
    }
  }
}

function gapBetween(one: Place, other: Place): number {
  return one.half + other.half + (one.item === null || other.item === null ? APART_FROM_LINE : APART);
}

/** The values nearest to those wanted (least squares) that keep their order and distances: neighbours that collide move as one. */
export function nearest(wanted: readonly number[], apart: readonly number[], weights: readonly number[]): number[] {
  const groups: { sum: number; weight: number; count: number }[] = [];
  let away = 0;
  const offsets: number[] = [];
  wanted.forEach((value, at) => {
    away += apart[at] ?? 0;
    offsets.push(away);
    const weight = weights[at] ?? 1;
    let group = { sum: (value - away) * weight, weight, count: 1 };
    for (
      let last = groups.at(-1);
      last !== undefined && last.sum / last.weight > group.sum / group.weight;
      last = groups.at(-1)
    ) {
      groups.pop();
      group = { sum: last.sum + group.sum, weight: last.weight + group.weight, count: last.count + group.count };
    }
    groups.push(group);
  });
  const found: number[] = [];
  for (const group of groups)
    for (let one = 0; one < group.count; one += 1)
      found.push(group.sum / group.weight + (offsets[found.length] as number));
  return found;
}

interface Piece {
  chain: number;
  from: number;
  to: number;
  track: number;
}

function routed(
  places: Place[],
  layers: readonly (readonly number[])[],
  chains: readonly Chain[],
  links: readonly PlanLink[],
  isRight: boolean,
  items: readonly PlanItem[],
): Inside {
  const ports = portsOf(places, chains);
  // In each gap between two layers: the parts of links that go across.
  const gaps: Piece[][] = Array.from({ length: Math.max(0, layers.length - 1) }, () => []);
  const widest = gaps.map(() => 0);
  chains.forEach((chain, at) => {
    const v = acrossAt(places, chain, at, ports);
    for (let step = 1; step < v.length; step += 1) {
      const layer = (places[chain.places[step - 1] as number] as Place).layer;
      const [from, to] = [v[step - 1] as number, v[step] as number];
      if (Math.abs(from - to) > 1) (gaps[layer] as Piece[]).push({ chain: at, from, to, track: 0 });
      if (step === 1)
        widest[layer] = Math.max(widest[layer] ?? 0, isRight ? chain.link.label.width : chain.link.label.height);
    }
  });
  const tracks = gaps.map(intoTracks);

  // Places along.
  let u = 0;
  const starts: number[] = [];
  const ends: number[] = [];
  layers.forEach((layer, at) => {
    const length = Math.max(0, ...layer.map((one) => (places[one] as Place).length));
    starts.push(u);
    ends.push(u + length);
    for (const one of layer) {
      const place = places[one] as Place;
      place.u = isRight ? u : u + (length - place.length) / 2;
    }
    const band = 12 + (tracks[at] ?? 0) * TRACK + (isRight ? 14 : 4);
    u += length + (at < gaps.length ? (widest[at] as number) * (isRight ? 1 : 2) + (isRight ? 14 : 8) + band : 0);
  });

  const least = Math.min(0, ...places.map((place) => place.v - place.half));
  const most = Math.max(0, ...places.map((place) => place.v + place.half));
  const point = (along: number, across: number): Point => (isRight ? [along, across - least] : [across - least, along]);

  const rects = new Map<string, Rect>();
  places.forEach((place) => {
    if (place.item === null) return;
    const [x, y] = point(place.u, place.v - place.half);
    rects.set(place.item.id, { x, y, width: place.item.width, height: place.item.height });
  });

  const routes = new Map<string, Route>();
  chains.forEach((chain, at) => {
    const v = acrossAt(places, chain, at, ports);
    const first = places[chain.places[0] as number] as Place;
    const last = places[chain.places.at(-1) as number] as Place;
    const points: Point[] = [point(first.u + first.length, v[0] as number)];
    let label: Label | null = null;
    for (let step = 1; step < v.length; step += 1) {
      const layer = (places[chain.places[step - 1] as number] as Place).layer;
      const [from, to] = [v[step - 1] as number, v[step] as number];
      const begin = step === 1 ? first.u + first.length : (ends[layer] as number);
      const end = step === v.length - 1 ? last.u : (starts[layer + 1] as number);
      const piece = (gaps[layer] as Piece[]).find((one) => one.chain === at);
      const room = isRight ? 14 : 8 + (widest[layer] as number);
      const track = (starts[layer + 1] as number) - room - 0.5 - (piece?.track ?? 0) * TRACK;
      if (piece !== undefined) points.push(point(track, from), point(track, to));
      const isBeside = first.after.length <= 1 || isRight;
      if (step === 1 && isBeside)
        label = beside(point((begin + (piece === undefined ? end : track)) / 2, from), isRight);
      if (step === v.length - 1 && label === null)
        label = beside(point((end + (piece === undefined ? begin : track)) / 2, to), isRight);
    }
    points.push(point(last.u, v.at(-1) as number));
    routes.set(chain.link.id, {
      points: chain.isReversed ? points.reverse() : points,
      label: label ?? beside(points[0] as Point, isRight),
    });
  });
  for (const link of links) {
    const rect = link.source === link.target ? rects.get(link.source) : undefined;
    if (rect !== undefined) routes.set(link.id, ownLoop(rect));
  }
  const width = Math.max(0, ...items.map((item) => (rects.get(item.id)?.x ?? 0) + (rects.get(item.id)?.width ?? 0)));
  const height = Math.max(
    0,
    ...items.map((item) => (rects.get(item.id)?.y ?? 0) + (rects.get(item.id)?.height ?? 0)),
    most - least > 0 && isRight ? most - least : 0,
  );
  return { width, height, rects, routes };
}

function beside([x, y]: Point, isRight: boolean): Label {
  return isRight ? { x, y: y - 9, anchor: "middle" } : { x: x + 6, y, anchor: "start" };
}

/** Where links leave and enter, so that those of one side do not lie on each other: by the order of where they go. */
function portsOf(places: readonly Place[], chains: readonly Chain[]): Map<string, number> {
  const found = new Map<string, number>();
  const sides = new Map<string, { chain: number; toward: number }[]>();
  chains.forEach((chain, at) => {
    const first = chain.places[0] as number;
    const last = chain.places.at(-1) as number;
    const out = sides.get(`${first}>`) ?? [];
    out.push({ chain: at, toward: (places[chain.places[1] as number] as Place).v });
    sides.set(`${first}>`, out);
    const into = sides.get(`>${last}`) ?? [];
    into.push({ chain: at, toward: (places[chain.places.at(-2) as number] as Place).v });
    sides.set(`>${last}`, into);
  });
  for (const [side, all] of sides) {
    const place = places[Number(side.replace(">", ""))] as Place;
    const step = Math.min(PORTS_APART, (2 * place.half - 16) / Math.max(1, all.length));
    all.sort((one, other) => one.toward - other.toward || one.chain - other.chain);
    all.forEach((one, at) => {
      found.set(`${side}${one.chain}`, (at - (all.length - 1) / 2) * step);
    });
  }
  return found;
}

function acrossAt(places: readonly Place[], chain: Chain, at: number, ports: ReadonlyMap<string, number>): number[] {
  const v = chain.places.map((one) => (places[one] as Place).v);
  const first = chain.places[0] as number;
  const last = chain.places.at(-1) as number;
  v[0] = (v[0] as number) + (ports.get(`${first}>${at}`) ?? 0);
  v[v.length - 1] = (v.at(-1) as number) + (ports.get(`>${last}${at}`) ?? 0);
  // What is almost straight is straight.
  for (let step = 1; step < v.length; step += 1)
    if (Math.abs((v[step] as number) - (v[step - 1] as number)) <= 2) v[step] = v[step - 1] as number;
  return v;
}

/** Parts that would lie on each other go in different tracks; the order is the one in which they do not cross. */
function intoTracks(pieces: Piece[]): number {
  const isDown = (piece: Piece) => piece.to > piece.from;
  // Counted from the next layer backwards: of those that go down, the highest turns last.
  const sorted = [
    ...pieces.filter(isDown).sort((one, other) => one.from - other.from),
    ...pieces.filter((piece) => !isDown(piece)).sort((one, other) => other.from - one.from),
  ];
  const taken: Piece[][] = [];
  for (const piece of sorted) {
    let track = 0;
    // Never before one that it must come after.
    for (let at = taken.length - 1; at >= 0; at -= 1) {
      if ((taken[at] as Piece[]).some((other) => overlaps(piece, other))) {
        track = at + 1;
        break;
      }
    }
    piece.track = track;
    const row = taken[track] ?? [];
    row.push(piece);
    taken[track] = row;
  }
  return Math.max(1, taken.length);
}

function overlaps(one: Piece, other: Piece): boolean {
  const [a, b] = one.from < one.to ? [one.from, one.to] : [one.to, one.from];
  const [c, d] = other.from < other.to ? [other.from, other.to] : [other.to, other.from];
  return a < d + 6 && c < b + 6;
}

function ownLoop(rect: Rect): Route {
  const right = rect.x + rect.width;
  const y = rect.y + 14;
  const x = right - 28;
  return {
    points: [
      [right, y],
      [right + 12, y],
      [right + 12, rect.y - 12],
      [x, rect.y - 12],
      [x, rect.y],
    ],
    label: { x: (x + right) / 2, y: rect.y - 20, anchor: "middle" },
  };
}
