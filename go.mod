module calla

go 1.26.0

require golang.org/x/text v0.44.0

require (
	github.com/gorilla/mux v1.8.1 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
)
