// Command build bundles the sources of the page into internal/page/assets/dist, with esbuild as a library. The
// libraries that the page uses are those of package-lock.json, as npm ci installs them.
package main
