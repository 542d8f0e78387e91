package main

import "math"

type point struct{ x, y float64 }

// shape says whether a point is in it.
type shape func(point) bool

// path is the inside of a closed curve: a start and cubic Bézier arcs, each of
// two control points and an end.
func path(x, y float64, arcs ...float64) shape {
	const steps = 24
	corners := []point{{x, y}}
	for ; len(arcs) >= 6; arcs = arcs[6:] {
		from := corners[len(corners)-1]
		for i := 1; i <= steps; i++ {
			t := float64(i) / steps
			u := 1 - t
			a, b, c, d := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
			corners = append(corners, point{
				a*from.x + b*arcs[0] + c*arcs[2] + d*arcs[4],
				a*from.y + b*arcs[1] + c*arcs[3] + d*arcs[5],
			})
		}
	}
	least, most := corners[0], corners[0]
	for _, c := range corners {
		least = point{min(least.x, c.x), min(least.y, c.y)}
		most = point{max(most.x, c.x), max(most.y, c.y)}
	}
	return func(p point) bool {
		if p.x < least.x || p.x > most.x || p.y < least.y || p.y > most.y {
			return false
		}
		in := false
		for i, j := 0, len(corners)-1; i < len(corners); i, j = i+1, i {
			a, b := corners[i], corners[j]
			if (a.y > p.y) != (b.y > p.y) && p.x < a.x+(b.x-a.x)*(p.y-a.y)/(b.y-a.y) {
				in = !in
			}
		}
		return in
	}
}

// stroke is a line with round ends, r to each side.
func stroke(x1, y1, x2, y2, r float64) shape {
	dx, dy := x2-x1, y2-y1
	return func(p point) bool {
		t := ((p.x-x1)*dx + (p.y-y1)*dy) / (dx*dx + dy*dy)
		t = min(max(t, 0), 1)
		return math.Hypot(p.x-x1-t*dx, p.y-y1-t*dy) < r
	}
}

// square is a rectangle with round corners of radius r.
func square(x1, y1, x2, y2, r float64) shape {
	return func(p point) bool {
		dx := max(x1+r-p.x, p.x-x2+r, 0)
		dy := max(y1+r-p.y, p.y-y2+r, 0)
		return math.Hypot(dx, dy) < r
	}
}

// within is a shape made smaller and moved.
func within(x, y, scale float64, s shape) shape {
	return func(p point) bool { return s(point{(p.x - x) / scale, (p.y - y) / scale}) }
}

// outline is the edge of a shape, as wide as r to the inside.
func outline(s shape, r float64) shape {
	const directions = 16
	return func(p point) bool {
		if !s(p) {
			return false
		}
		for i := range directions {
			a := 2 * math.Pi * float64(i) / directions
			if !s(point{p.x + r*math.Cos(a), p.y + r*math.Sin(a)}) {
				return true
			}
		}
		return false
	}
}
