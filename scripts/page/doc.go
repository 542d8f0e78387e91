// Package page holds tests alone: the local page in a real browser, as people
// use it, against a calla process that serves the demo model. Faults that a
// healthy process does not have are played by a proxy before it.
//
// It is a module of its own, because what drives the browser is none of calla's
// business. The tests need Chromium: CALLA_CHROMIUM names it, or chromium is
// found on the path; and for the accessibility checks CALLA_AXE, the file
// axe.min.js of the npm package axe-core. What is missing is skipped.
package page
