import { defineConfig, mergeConfig } from "vitest/config";
import page from "./vite.config.ts";

// Apart from the page's own: building it must not need what tests need.
export default mergeConfig(
  page,
  defineConfig({
    // A file that needs a document begins with `// @vitest-environment happy-dom`: making one takes longer than most tests.
    test: { pool: "threads", environment: "node", include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true, css: true },
  }),
);
