/** The mark of Penstock: a pipe that goes down from one basin to the next. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" focusable="false" className="shell-mark">
      <rect width="32" height="32" rx="7" fill="var(--accent-ground)" />
      <path d="M7 10h8c6 0 4 12 10 12" fill="none" stroke="#fff" strokeWidth="3.4" strokeLinecap="round" />
      <circle cx="7.5" cy="10" r="3" fill="#fff" />
      <circle cx="24.5" cy="22" r="3" fill="#86d4ec" />
    </svg>
  );
}
