import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { budget } from "./plugins/budget.ts";
import { licences } from "./plugins/licences.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The server whose API the development server asks: `penstock ui` or `penstock serve`.
const server = process.env.PENSTOCK_SERVER ?? "http://127.0.0.1:8470";

export default defineConfig({
  root: here("."),
  base: "/",
  plugins: [react(), licences(here("node_modules")), budget(250_000)],
  resolve: { alias: { "@": here("src") } },
  build: {
    outDir: here("../src/penstock/web"),
    emptyOutDir: true,
    sourcemap: false,
    // Colours are written with `light-dark()`, which must stay as it is.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The policy of the page allows neither inline scripts nor workers from `blob:` or `data:`: everything is a file of ours.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What every page needs at once is one file: each file costs some hundred bytes of headers, and compresses worse than a part of
    // a larger one. The tree of values is needed later.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: "base",
              test: /[\\/](node_modules[\\/](react|react-dom|scheduler|@tanstack)|src[\\/](ui(?![\\/](ValueTree|tree)\.)|api|live|shell))[\\/]/,
            },
          ],
        },
      },
    },
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      "^/(api|hooks|health|ready|metrics)(/|$|\\?)": {
        target: server,
        // The server rejects writes whose `Origin` is not its own host.
        changeOrigin: true,
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
});
