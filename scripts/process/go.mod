module calla/scripts/process

go 1.26.0
