// Package icons holds the pictures of the menu bar. They, and the icon of the
// bundle beside them, are drawn by the program in draw, the one source of all.
package icons

import _ "embed"

//go:generate go run ./draw

// Menu is the icon in colour, a PNG of 44 pixels a side.
//
//go:embed menu.png
var Menu []byte

// Template is its shape in black, which macOS tints for light and dark bars.
//
//go:embed template.png
var Template []byte
