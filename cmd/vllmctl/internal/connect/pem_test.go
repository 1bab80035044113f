package connect_test

import (
	"encoding/pem"
	"net/http/httptest"
)

// pemOf is the certificate of a test server, which is its own authority.
func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
