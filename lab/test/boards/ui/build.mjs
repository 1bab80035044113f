// Bundles the page. It runs in the directory that has node_modules: node build.mjs SOURCE OUTPUT
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [source, output] = process.argv.slice(2);
const { dependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
// Two copies of React or of a context of Perses on one page do not work.
const single = ['react', 'react-dom', '@emotion/react', '@emotion/styled', '@mui/material', '@tanstack/react-query',
  '@perses-dev/components', '@perses-dev/core', '@perses-dev/plugin-system', '@perses-dev/dashboards', '@perses-dev/explore', 'use-query-params'];
for (const name of single) {
  if (!dependencies[name]) {
    throw new Error('package.json does not name ' + name);
  }
}
await build({
  entryPoints: [join(source, 'main.tsx')],
  outfile: join(output, 'main.js'),
  bundle: true,
  minify: true,
  jsx: 'automatic',
  nodePaths: [resolve('node_modules')],
  alias: Object.fromEntries(single.map((name) => [name, resolve('node_modules', name)])),
  define: { global: 'globalThis', 'process.env.NODE_ENV': '"production"' },
  loader: { '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl', '.svg': 'dataurl' },
  logLevel: 'error',
});
