// forward evaluates token ids with llama.cpp, as measure.py tells it to:
//
//   forward MODEL.gguf THREADS CONTEXT [OPTION=VALUE...]
//
// on that many threads of the processor, or with 0 on the GPU. It answers each line of standard input with a line of JSON; ../README.md has
// the lines. Options: ubatch (tokens evaluated at once), map=0 (read the file
// instead of mapping it).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] static void fail(const std::string & what) {
    std::cerr << "forward: " << what << "\n";
    std::exit(1);
}

// The tokens that every engine is given: position alone decides.
static llama_token token_at(int position, int vocabulary) {
    uint32_t x = uint32_t(position) * 2654435761u + 12345u;
    x ^= x >> 15;
    return llama_token((x * 2246822519u >> 8) % uint32_t(vocabulary));
}

class Forward {
  public:
    Forward(const char * path, int threads, int context, int ubatch, bool map) {
        auto start = Clock::now();
        llama_log_set([](ggml_log_level level, const char * text, void *) {
            if (level == GGML_LOG_LEVEL_ERROR || std::getenv("VERBOSE")) std::fputs(text, stderr);
        }, nullptr);
        ggml_backend_load_all();
        llama_model_params m = llama_model_default_params();
        m.n_gpu_layers = threads > 0 ? 0 : -1;
        m.load_mode = map ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
        model = llama_model_load_from_file(path, m);
        if (!model) fail(std::string("cannot load ") + path);
        llama_context_params c = llama_context_default_params();
        c.n_ctx = context;
        c.n_batch = context;
        c.n_ubatch = ubatch;
        if (threads > 0) c.n_threads = c.n_threads_batch = threads;
        c.offload_kqv = c.op_offload = threads <= 0;
        c.no_perf = true;
        ctx = llama_init_from_model(model, c);
        if (!ctx) fail("cannot make a context");
        vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
        std::printf("{\"loaded\": %.6f, \"system\": \"%s\"}\n", since(start), llama_print_system_info());
    }

    // prefill evaluates the first n tokens from nothing, to the token that follows.
    void prefill(int n) {
        llama_memory_clear(llama_get_memory(ctx), true);
        at = 0;
        std::vector<llama_token> tokens(n);
        for (int i = 0; i < n; i++) tokens[i] = token_at(i, vocabulary);
        auto start = Clock::now();
        evaluate(tokens.data(), n);
        report(since(start), {argmax()});
    }

    // decode evaluates n more tokens one by one: the given ones, or those that
    // the model chooses.
    void decode(int n, bool own) {
        std::vector<llama_token> chosen;
        llama_token next = own ? argmax() : 0;
        auto start = Clock::now();
        for (int i = 0; i < n; i++) {
            llama_token t = own ? next : token_at(at, vocabulary);
            evaluate(&t, 1);
            chosen.push_back(next = argmax());
        }
        report(since(start), chosen);
    }

    void logits() {
        const float * l = llama_get_logits_ith(ctx, -1);
        std::printf("{\"logits\": [");
        for (int i = 0; i < vocabulary; i++) std::printf(i ? ", %.6g" : "%.6g", l[i]);
        std::printf("]}\n");
    }

  private:
    void evaluate(llama_token * tokens, int n) {
        if (llama_decode(ctx, llama_batch_get_one(tokens, n))) fail("llama_decode failed");
        llama_synchronize(ctx);
        at += n;
    }

    llama_token argmax() {
        const float * l = llama_get_logits_ith(ctx, -1);
        llama_token best = 0;
        for (int i = 1; i < vocabulary; i++) {
            if (l[i] > l[best]) best = i;
        }
        return best;
    }

    static void report(double seconds, const std::vector<llama_token> & tokens) {
        std::printf("{\"seconds\": %.9f, \"tokens\": [", seconds);
        for (size_t i = 0; i < tokens.size(); i++) std::printf(i ? ", %d" : "%d", tokens[i]);
        std::printf("]}\n");
    }

    llama_model *   model = nullptr;
    llama_context * ctx = nullptr;
    int             vocabulary = 0;
    int             at = 0;
};

int main(int argc, char ** argv) {
    if (argc < 4) fail("usage: forward MODEL.gguf THREADS CONTEXT [ubatch=N] [map=0]");
    int ubatch = 512, map = 1;
    for (int i = 4; i < argc; i++) {
        if (std::sscanf(argv[i], "ubatch=%d", &ubatch) != 1 && std::sscanf(argv[i], "map=%d", &map) != 1) {
            fail(std::string("unknown option ") + argv[i]);
        }
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    Forward f(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), ubatch, map != 0);
    for (std::string line, what; std::getline(std::cin, line);) {
        int n = 0;
        std::istringstream(line) >> what >> n;
        if (what == "prefill") f.prefill(n);
        else if (what == "decode") f.decode(n, false);
        else if (what == "greedy") f.decode(n, true);
        else if (what == "logits") f.logits();
        else fail("unknown line: " + line);
    }
}
