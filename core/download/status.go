package download

// Status says in what condition a folder is, by its receipt and journals alone.
type Status struct {
	Done, Total int64 // bytes that are there, proved or on their way, and wanted
	// Changed is why the proved files can't be trusted any more, or nil.
	Changed error
}

// Complete says whether all files are proved and unchanged.
func (s Status) Complete() bool { return s.Changed == nil && s.Done == s.Total }

// Status looks at the folder of a receipt without reading its files.
func (r *Receipt) Status() Status {
	s := Status{Total: r.Total, Changed: r.Check()}
	for i := range r.Files {
		if r.Files[i].check(r.Folder) == nil {
			s.Done += r.Files[i].Size
		}
	}
	finals, err := unfinished(r.Folder)
	if err != nil {
		return s
	}
	for _, final := range finals {
		if absent(final) {
			s.Done += unfinishedBytes(final)
		}
	}
	return s
}
