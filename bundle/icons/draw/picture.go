package main

import (
	"image"
	"image/color"
)

// layer is a shape in one colour. A clear one takes away what is below it.
type layer struct {
	shape shape
	color color.NRGBA
	clear bool
}

var (
	green = color.NRGBA{0x1f, 0x6b, 0x4a, 0xff}
	leaf  = color.NRGBA{0x8f, 0xc9, 0x8a, 0xff}
	white = color.NRGBA{0xff, 0xfc, 0xf4, 0xff}
	shade = color.NRGBA{0xe4, 0xe2, 0xd2, 0xff}
	gold  = color.NRGBA{0xf2, 0xb1, 0x1d, 0xff}
	black = color.NRGBA{0, 0, 0, 0xff}
)

// The pictures, from the back to the front, in a square of side 1.
var (
	badge = []layer{
		{shape: square(0.1, 0.1, 0.9, 0.9, 0.18), color: green},
		{shape: within(0.2, 0.17, 0.64, stem), color: leaf},
		{shape: within(0.2, 0.17, 0.64, spathe), color: white},
		{shape: within(0.2, 0.17, 0.64, throat), color: shade},
		{shape: within(0.2, 0.17, 0.64, spadix), color: gold},
	}
	flower = []layer{
		{shape: stem, color: green},
		{shape: spathe, color: white},
		{shape: throat, color: shade},
		{shape: spadix, color: gold},
		{shape: edge, color: green},
	}
	silhouette = []layer{
		{shape: stem, color: black},
		{shape: spathe, color: black},
		{shape: spadix, clear: true},
	}
)

// The parts of the flower.
var (
	spathe = path(0.50, 0.80,
		0.38, 0.64, 0.10, 0.52, 0.15, 0.30,
		0.19, 0.13, 0.40, 0.08, 0.58, 0.13,
		0.72, 0.17, 0.86, 0.12, 0.93, 0.03,
		0.97, 0.26, 0.86, 0.40, 0.74, 0.50,
		0.63, 0.60, 0.56, 0.68, 0.50, 0.80)
	throat = path(0.49, 0.62,
		0.40, 0.56, 0.25, 0.46, 0.27, 0.32,
		0.30, 0.21, 0.46, 0.18, 0.57, 0.22,
		0.68, 0.27, 0.66, 0.46, 0.49, 0.62)
	spadix = stroke(0.49, 0.53, 0.46, 0.29, 0.055)
	stem   = stroke(0.50, 0.76, 0.53, 0.96, 0.04)
	edge   = outline(spathe, 0.022)
)

// fine is how many samples a pixel has along each side.
const fine = 4

// draw draws layers into a square of n pixels a side.
func draw(n int, layers []layer) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, n, n))
	for y := range n {
		for x := range n {
			m.SetNRGBA(x, y, pixel(layers, x, y, n))
		}
	}
	return m
}

// pixel is the mean of a pixel's samples, each one colour or none.
func pixel(layers []layer, x, y, n int) color.NRGBA {
	var r, g, b, covered int
	for i := range fine * fine {
		at := point{
			(float64(x) + (float64(i%fine)+0.5)/fine) / float64(n),
			(float64(y) + (float64(i/fine)+0.5)/fine) / float64(n),
		}
		if c := sample(layers, at); c.A > 0 {
			r, g, b, covered = r+int(c.R), g+int(c.G), b+int(c.B), covered+1
		}
	}
	if covered == 0 {
		return color.NRGBA{}
	}
	return color.NRGBA{uint8(r / covered), uint8(g / covered), uint8(b / covered), uint8(255 * covered / (fine * fine))}
}

func sample(layers []layer, at point) color.NRGBA {
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].shape(at) {
			if layers[i].clear {
				return color.NRGBA{}
			}
			return layers[i].color
		}
	}
	return color.NRGBA{}
}
