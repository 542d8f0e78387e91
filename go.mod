module calla

go 1.26
