package bench

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// PictureFormats are those that WritePicture knows.
var PictureFormats = []string{"png", "svg"}

// series is one line of a chart: medians with their spread.
type series struct {
	name string
	at   []float64 // tokens
	y    []Summary
	// fit, where not nil, is the curve through them.
	fit func(tokens float64) float64
}

// chart is one half of a picture.
type chart struct {
	title, x, y string
	series      []series
}

// The size of a picture, and the colours of its series: ours, and another's.
const (
	pictureWidth  = 18 * vg.Centimeter
	pictureHeight = 20 * vg.Centimeter
)

var colours = []color.Color{
	color.RGBA{0x1b, 0x6c, 0xa8, 0xff},
	color.RGBA{0xc4, 0x5a, 0x1a, 0xff},
}

// WritePicture draws prefill over decode. It draws what has numbers.
func (r *Report) WritePicture(w io.Writer, format string) error {
	prefill, decode := series{name: r.Model}, series{name: r.Model}
	for _, x := range r.Points {
		prefill.add(x.Tokens, x.Prefill)
		decode.add(x.Tokens, x.Decode)
	}
	if f := r.PrefillFit; f != nil {
		prefill.fit = func(n float64) float64 { return 1 / (f.First.Value + f.Second.Value*n) }
	}
	if f := r.DecodeFit; f != nil {
		decode.fit = func(n float64) float64 {
			return 1 / (f.First.Value + f.Second.Value*(n+float64(r.Tokens/2)))
		}
	}
	return drawCharts(w, format, []chart{
		{"Prefill: " + r.Device, "tokens of the prompt", "tokens a second", []series{prefill}},
		{"Decode", "tokens of context", "tokens a second", []series{decode}},
	})
}

func (s *series) add(tokens int, y *Summary) {
	if y != nil {
		s.at, s.y = append(s.at, float64(tokens)), append(s.y, *y)
	}
}

// Len, XY and YError make a series what plotter draws.
func (s *series) Len() int { return len(s.at) }

func (s *series) XY(i int) (x, y float64) { return s.at[i], s.y[i].Median }

func (s *series) YError(i int) (low, high float64) {
	return s.y[i].Median - s.y[i].Least, s.y[i].Most - s.y[i].Median
}

// drawCharts draws one chart below the other.
func drawCharts(w io.Writer, format string, charts []chart) error {
	canvas, err := draw.NewFormattedCanvas(pictureWidth, pictureHeight, format)
	if err != nil {
		return fmt.Errorf("bench: picture as %q, want one of %v: %w", format, PictureFormats, err)
	}
	rows := make([][]*plot.Plot, len(charts))
	for i, c := range charts {
		p, err := c.plot()
		if err != nil {
			return fmt.Errorf("bench: picture: %w", err)
		}
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadX: vg.Centimeter, PadY: vg.Centimeter,
		PadTop: vg.Centimeter / 2, PadBottom: vg.Centimeter / 2, PadLeft: vg.Centimeter / 2, PadRight: vg.Centimeter}
	for i, cells := range plot.Align(rows, tiles, draw.New(canvas)) {
		rows[i][0].Draw(cells[0])
	}
	_, err = canvas.WriteTo(w)
	return err
}

func (c chart) plot() (*plot.Plot, error) {
	p := plot.New()
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		f.Variant = "Sans"
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Legend.Top, p.Legend.Padding = true, vg.Millimeter
	p.Add(plotter.NewGrid())
	var at []float64
	for i := range c.series {
		s := &c.series[i]
		if s.Len() == 0 {
			continue
		}
		at = append(at, s.at...)
		if err := s.draw(p, colours[i%len(colours)]); err != nil {
			return nil, err
		}
	}
	if len(at) == 0 {
		p.Title.Text += ": nothing was measured"
		return p, nil
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, lengthTicks(at)
	p.X.Min, p.X.Max = slices.Min(at)/1.15, slices.Max(at)*1.15
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1.1*p.Y.Max, rateTicks{}
	return p, nil
}

// rateTicks are the usual ones with numbers as short as the report's.
type rateTicks struct{}

// Ticks implements plot.Ticker.
func (rateTicks) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i := range ticks {
		if !ticks[i].IsMinor() {
			ticks[i].Label = digits(ticks[i].Value)
		}
	}
	return ticks
}

// draw adds the medians with their spread, and the curve through them or lines
// between them.
func (s *series) draw(p *plot.Plot, c color.Color) error {
	dots, err := plotter.NewScatter(s)
	if err != nil {
		return err
	}
	dots.Color, dots.Shape, dots.Radius = c, draw.CircleGlyph{}, vg.Points(2.5)
	bars, err := plotter.NewYErrorBars(s)
	if err != nil {
		return err
	}
	bars.Color = c
	line, err := plotter.NewLine(s.curve())
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1)
	p.Add(line, bars, dots)
	p.Legend.Add(s.name, line, dots)
	return nil
}

// curve returns the fit in steps that look smooth, or the medians without one.
func (s *series) curve() plotter.XYs {
	var out plotter.XYs
	if s.fit == nil {
		for i := range s.at {
			out = append(out, plotter.XY{X: s.at[i], Y: s.y[i].Median})
		}
		return out
	}
	const factor = 1.05
	last := slices.Max(s.at)
	for x := slices.Min(s.at); x < last; x *= factor {
		out = append(out, plotter.XY{X: x, Y: s.fit(x)})
	}
	return append(out, plotter.XY{X: last, Y: s.fit(last)})
}

// lengthTicks marks the lengths that were measured.
func lengthTicks(at []float64) plot.ConstantTicks {
	at = slices.Compact(slices.Sorted(slices.Values(at)))
	var ticks plot.ConstantTicks
	for _, x := range at {
		label := fmt.Sprintf("%.0f", x)
		if k := x / 1024; k == math.Trunc(k) {
			label = fmt.Sprintf("%.0fK", k)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
	}
	return ticks
}
