/** Our own small set of icons: 16 by 16, drawn with the colour of the text. Beside a word they are decoration; alone they need a `label`. */
import type { ReactNode } from "react";

const stroke = (d: string): ReactNode => <path d={d} />;

const ICONS = {
  runs: stroke("M3 4h6M3 8h10M3 12h7M12 2.5v3M12 10.5v3"),
  documents: stroke("M4 2h5l3 3v9H4zM9 2v3h3M6 8.5h4M6 11h4"),
  compare: stroke("M2.5 3h4v10h-4zM9.5 3h4v10h-4zM4.5 6v0M11.5 6v0M4.5 9v0M11.5 9v0"),
  reference: stroke("M3 2.8h4c.6 0 1 .4 1 1v9.4c0-.6-.4-1-1-1H3zM13 2.8H9c-.6 0-1 .4-1 1v9.4c0-.6.4-1 1-1h4z"),
  schedules: stroke("M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM8 4.8V8l2.2 1.6"),
  fleet: stroke("M2.5 3h11v3.5h-11zM2.5 9.5h11V13h-11zM5 4.7v0M5 11.2v0M8 6.5v3"),
  "sign-out": stroke("M6.5 2.5h-3v11h3M10 5l3 3-3 3M13 8H6.5"),
  "theme-system": (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5a5.5 5.5 0 0 0 0 11z" fill="currentColor" stroke="none" />
    </>
  ),
  "theme-light": stroke(
    "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  ),
  "theme-dark": stroke("M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z"),
  search: stroke("M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.4 3.4"),
  filter: stroke("M2.5 3.5h11L9.3 8.6v4.2l-2.6-1.4V8.6z"),
  close: stroke("M4 4l8 8M12 4l-8 8"),
  check: stroke("M3 8.5l3.2 3.2L13 4.8"),
  minus: stroke("M3.5 8h9"),
  plus: stroke("M8 3.5v9M3.5 8h9"),
  more: (
    <g fill="currentColor" stroke="none">
      <circle cx="3.5" cy="8" r="1.2" />
      <circle cx="8" cy="8" r="1.2" />
      <circle cx="12.5" cy="8" r="1.2" />
    </g>
  ),
  "chevron-right": stroke("M6 3.5L10.5 8 6 12.5"),
  "chevron-left": stroke("M10 3.5L5.5 8l4.5 4.5"),
  "chevron-down": stroke("M3.5 6L8 10.5 12.5 6"),
  "chevron-up": stroke("M3.5 10L8 5.5l4.5 4.5"),
  "arrow-right": stroke("M3 8h10M9 4l4 4-4 4"),
  "arrow-left": stroke("M13 8H3M7 4L3 8l4 4"),
  "arrow-up": stroke("M8 13V3M4 7l4-4 4 4"),
  "arrow-down": stroke("M8 3v10M4 9l4 4 4-4"),
  copy: stroke("M5.5 5.5h7v8h-7zM3.5 10.5v-8h7"),
  download: stroke("M8 2.5v7.5M4.8 7L8 10.2 11.2 7M3 13.2h10"),
  upload: stroke("M8 10.5V3M4.8 6L8 2.8 11.2 6M3 13.2h10"),
  external: stroke("M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3L7.5 8.5"),
  link: stroke(
    "M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2-2a2.6 2.6 0 0 0-3.7-3.7l-.7.7M9.2 6.8a2.6 2.6 0 0 0-3.7 0l-2 2a2.6 2.6 0 0 0 3.7 3.7l.7-.7",
  ),
  refresh: stroke("M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3"),
  play: <path d="M5 3.2v9.6L12.5 8z" fill="currentColor" />,
  pause: stroke("M5.5 3.5v9M10.5 3.5v9"),
  stop: <path d="M4 4h8v8H4z" fill="currentColor" />,
  "step-back": stroke("M11.5 3.5L6 8l5.5 4.5zM4 3.5v9"),
  "step-forward": stroke("M4.5 3.5L10 8l-5.5 4.5zM12 3.5v9"),
  first: stroke("M12.5 3.5L8 8l4.5 4.5M8 3.5L3.5 8 8 12.5"),
  last: stroke("M3.5 3.5L8 8l-4.5 4.5M8 3.5L12.5 8 8 12.5"),
  resume: stroke("M3 8a5 5 0 1 0 1.5-3.6M3 2.5v3h3"),
  edit: stroke("M3 13l.6-3L11 2.6l2.4 2.4L6 12.4z"),
  trash: stroke("M3 4.5h10M6.2 4.5V2.8h3.6v1.7M4.4 4.5l.6 8.7h6l.6-8.7"),
  save: stroke("M3 3h8l2 2v8H3zM5.5 3v3.5h5V3M5.5 13V9.5h5V13"),
  graph: stroke("M2.5 6.5h4v3h-4zM10 2.5h3.5v3H10zM10 10.5h3.5v3H10zM6.5 8h1.7M8.2 4v8M8.2 4H10M8.2 12H10"),
  timeline: stroke("M2.5 3.5h5M5 6.5h6M7 9.5h6.5M4 12.5h4"),
  table: stroke("M2.5 3h11v10h-11zM2.5 6.3h11M6.5 3v10"),
  list: stroke("M5.5 4h8M5.5 8h8M5.5 12h8M2.8 4v0M2.8 8v0M2.8 12v0"),
  lines: stroke("M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5"),
  code: stroke("M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5M9 3l-2 10"),
  data: stroke(
    "M3 4c0-1 2.2-1.8 5-1.8s5 .8 5 1.8-2.2 1.8-5 1.8S3 5 3 4zM3 4v8c0 1 2.2 1.8 5 1.8s5-.8 5-1.8V4M3 8c0 1 2.2 1.8 5 1.8s5-.8 5-1.8",
  ),
  why: stroke("M5.8 6a2.3 2.3 0 1 1 3.2 2.1c-.7.3-1 .8-1 1.6M8 12.6v0"),
  info: stroke("M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM8 7.3V11M8 5v0"),
  warning: stroke("M8 2.5l6 10.8H2zM8 6.6v3M8 11.4v0"),
  error: stroke("M5.5 2.2h5l3.3 3.3v5l-3.3 3.3h-5l-3.3-3.3v-5zM8 5v3.5M8 10.9v0"),
  folder: stroke("M2 4h4.2l1.3 1.6H14V13H2z"),
  file: stroke("M4 2h5l3 3v9H4zM9 2v3h3"),
  playbook: stroke("M4 3.5v0M4 8v0M4 12.5v0M6.8 3.5H13M6.8 8H13M6.8 12.5H13M4 5.2v1.1M4 9.7v1.1"),
  job: stroke("M2 5.5h3.5v5H2zM10.5 5.5H14v5h-3.5zM5.5 8h5M8.7 6.2L10.5 8 8.7 9.8"),
  key: stroke("M5.2 6.2a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM7.2 7L13 2.8M11.2 4.2l1.4 2"),
  user: stroke("M8 2.6a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2zM3 13.4c.5-2.6 2.5-3.8 5-3.8s4.5 1.2 5 3.8"),
  keyboard: stroke("M1.8 4h12.4v8H1.8zM4.3 6.5v0M6.8 6.5v0M9.2 6.5v0M11.7 6.5v0M5 9.5h6"),
  expand: stroke("M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5L9 7M2.5 13.5L7 9"),
  collapse: stroke("M13 7H9V3M3 9h4v4M9 7l4.5-4.5M7 9l-4.5 4.5"),
  fit: stroke("M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10"),
  "zoom-in": stroke("M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.4 3.4M7 5.2v3.6M5.2 7h3.6"),
  "zoom-out": stroke("M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.4 3.4M5.2 7h3.6"),
  lock: stroke("M4 7.2h8v6.3H4zM5.5 7.2V5a2.5 2.5 0 0 1 5 0v2.2"),
  bell: stroke("M4 11V7.2a4 4 0 0 1 8 0V11l1.2 1.2H2.8zM6.8 14h2.4"),
  loop: stroke("M4 5.5h7.5v5H4.5M6.2 3.3L4 5.5l2.2 2.2M9.8 12.7"),
  server: stroke("M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5v0M5 11v0"),
  worker: stroke(
    "M8 5.6a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8zM8 2v2M8 12v2M2 8h2M12 8h2M3.8 3.8l1.4 1.4M10.8 10.8l1.4 1.4M12.2 3.8l-1.4 1.4M5.2 10.8l-1.4 1.4",
  ),

  /* states: each has a shape of its own, so that none is told by colour alone */
  waiting: (
    <>
      <circle cx="8" cy="8" r="5.5" strokeDasharray="2.2 2.2" />
      <path d="M8 5.2V8l1.8 1.2" />
    </>
  ),
  running: (
    <>
      <circle cx="8" cy="8" r="5.5" opacity=".3" />
      <path className="ui-spin" d="M8 2.5A5.5 5.5 0 0 1 13.5 8" />
    </>
  ),
  ok: (
    <>
      <circle cx="8" cy="8" r="6.2" fill="currentColor" stroke="none" />
      <path d="M5 8.3l2.1 2.1L11 6.2" className="ui-icon-cut" />
    </>
  ),
  failed: (
    <>
      <path d="M5.3 1.8h5.4l3.5 3.5v5.4l-3.5 3.5H5.3l-3.5-3.5V5.3z" fill="currentColor" stroke="none" />
      <path d="M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6" className="ui-icon-cut" />
    </>
  ),
  idle: <circle cx="8" cy="8" r="5.5" strokeDasharray="2.2 2.2" />,
  skipped: stroke("M3 4.5L7.5 8 3 11.5M8 4.5L12.5 8 8 11.5"),
  cancelled: stroke("M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM4 12l8-8"),
  interrupted: (
    <>
      <rect x="2" y="2" width="12" height="12" rx="2.5" fill="currentColor" stroke="none" />
      <path d="M6.2 5.2v5.6M9.8 5.2v5.6" className="ui-icon-cut" />
    </>
  ),
  crashed: <path d="M9.5 1.5L3 9.2h4.2L6.2 14.5 13 6.6H8.6z" fill="currentColor" strokeLinejoin="round" />,
  retrying: stroke("M13 8a5 5 0 1 1-1.5-3.6M13 2.2v3.2H9.8M8 5.6V8l1.6 1"),
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof ICONS;
export const iconNames = Object.keys(ICONS) as IconName[];

interface IconProps {
  name: IconName;
  /** In pixels; 16 unless told. */
  size?: number;
  /** What it means, if no word beside it says so. */
  label?: string;
  className?: string;
}

export function Icon({ name, size = 16, label, className }: IconProps) {
  const said = label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: it is hidden, or has its label as `aria-label`.
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      focusable="false"
      className={className === undefined ? "ui-icon" : `ui-icon ${className}`}
      {...said}
    >
      {ICONS[name]}
    </svg>
  );
}
