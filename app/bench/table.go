package bench

import (
	"encoding/csv"
	"io"
	"strconv"
)

// columns are those of the CSV file of a report: a row for each length.
var columns = []string{
	"calla", "revision", "system", "device", "model", "tokens",
	"first_token_s", "first_token_least_s", "first_token_most_s",
	"prefill_tokens_per_s", "prefill_least", "prefill_most",
	"decode_tokens_per_s", "decode_least", "decode_most",
	"bytes_per_token", "share_of_bandwidth", "bandwidth_bytes_per_s", "peak_memory_bytes",
	"runs", "runs_wanted", "refused",
}

// WriteCSV writes a row for each length. What has no number is empty.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(columns); err != nil {
		return err
	}
	for _, x := range r.Points {
		row := []string{r.Calla, r.Revision, r.System, r.Device, r.Model, strconv.Itoa(x.Tokens)}
		for _, s := range []*Summary{x.FirstToken, x.Prefill, x.Decode} {
			row = append(row, cells(s)...)
		}
		row = append(row, whole(x.Bytes), cell(x.Share), cell(r.Bandwidth), whole(r.Peak),
			strconv.Itoa(len(x.Runs)), strconv.Itoa(x.Wanted), x.Refused)
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func cells(s *Summary) []string {
	if s == nil {
		return []string{"", "", ""}
	}
	return []string{cell(s.Median), cell(s.Least), cell(s.Most)}
}

// cell writes a number that is never 0 where it is known, with six digits that
// count.
func cell(x float64) string {
	if x == 0 {
		return ""
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // of what was just written
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// whole writes a count that is never 0 where it is known.
func whole(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
