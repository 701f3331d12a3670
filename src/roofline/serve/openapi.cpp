#include "roofline/ask/ask.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/serve/server.hpp"

namespace roofline::serve {
namespace {

using io::Json;
using io::OrderedJson;

OrderedJson reference(const char* name) {
    return {{"$ref", std::string("#/components/schemas/") + name}};
}

OrderedJson error(const char* when) {
    return {{"description", when}, {"content", {{"application/json", {{"schema", reference("Error")}}}}}};
}

/// Of everything that is asked of the core; whoever adds more knows which.
OrderedJson answers(const char* what) {
    return {{"200", {{"description", what}, {"content", {{"application/json", {{"schema", {{"type", "object"}}}}}}}}},
            {"400", error("What was wrong with the question, in one line")},
            {"405", error("Another method; the header Allow names those that are taken")},
            {"413", error("The request is larger than 16 MiB")},
            {"500", error("A fault of the program")},
            {"503", error("The answer was not there in time")}};
}

/// The type as --help spells it, for JSON: numbers may be given as numbers or as texts.
OrderedJson schema_of(const Json& option) {
    if (option["type"] == "flag") return {{"type", "boolean"}};
    OrderedJson schema = {{"type", {"string", "number"}}};
    if (!option["choices"].empty()) schema = {{"type", "string"}, {"enum", option["choices"]}};
    if (option["default"].is_string() && option["default"] != "") schema["default"] = option["default"];
    if (option["several"] == true) return {{"type", "array"}, {"items", {{"type", "string"}}}};
    return schema;
}

OrderedJson body_with(const OrderedJson& properties) {
    const OrderedJson body = {
        {"type", "object"},
        {"properties",
         {{"options", {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}},
          {"files",
           {{"type", "object"},
            {"additionalProperties", {{"type", "string"}}},
            {"description", "Texts of files that options name: a config.json, a device, a report"}}},
          {"binaries",
           {{"type", "object"}, {"description", "Beginnings of GGUF files: { NAME: { base64, size } }"}}}}}};
    return {{"required", true}, {"content", {{"application/json", {{"schema", body}}}}}};
}

void add_verb(OrderedJson& document, const std::string& verb, const Json& options, const char* what) {
    OrderedJson properties = OrderedJson::object();
    OrderedJson parameters = OrderedJson::array();
    for (const Json& option : options) {
        OrderedJson schema = schema_of(option);
        schema["description"] = option["help"];
        const std::string name = option["name"];
        parameters.push_back({{"name", name}, {"in", "query"}, {"schema", schema}});
        properties[name] = std::move(schema);
    }
    OrderedJson& path = document["paths"]["/api/v1/" + verb];
    path["get"] = {{"summary", what}, {"parameters", parameters}, {"responses", answers(what)}};
    path["post"] = {{"summary", what}, {"requestBody", body_with(properties)}, {"responses", answers(what)}};
}

}  // namespace

std::string openapi() {
    ask::Memory memory;
    const Json known = Json::parse(ask::answer(R"({"verb": "options"})", memory).text, nullptr, false);
    OrderedJson document = {{"openapi", "3.1.0"},
                            {"info",
                             {{"title", "roofline"},
                              {"version", ROOFLINE_VERSION},
                              {"description",
                               "How fast a language model can run on a machine, what holds it back, and "
                               "what to change. Answers are what the command line prints as JSON."}}}};
    document["paths"] = OrderedJson::object();
    struct Described {
        const char* verb;
        const char* what;
    };
    for (const auto& [verb, what] :
         {Described{"predict", "How fast can it go, how fast will it go, and what holds it back?"},
          Described{"advise", "What should I change, and what would each change really buy?"},
          Described{"plan", "Which devices, how many, and how to spread a model over them?"},
          Described{"sweep", "The same question for many values"}})
        add_verb(document, verb, known["verbs"][verb], what);
    add_verb(document, "explain", known["verbs"]["predict"], "The arithmetic of every operator, as text");
    const auto get = [&](const char* path, const char* what) {
        document["paths"][path]["get"] = {{"summary", what}, {"responses", answers(what)}};
    };
    get("/api/v1/models", "Names of built-in models");
    get("/api/v1/devices", "Built-in devices with every figure");
    get("/api/v1/options", "What each verb takes");
    get("/api/v1/openapi.json", "This description");
    get("/", "The calculator, a page for browsers, as gzip");
    get("/index.html", "The same page");
    for (const char* path : {"/", "/index.html"}) {
        OrderedJson& responses = document["paths"][path]["get"]["responses"];
        responses["200"]["content"] = {{"text/html", OrderedJson::object()}};
        responses["404"] = error("The program was built without the page");
        responses["406"] = error("The browser takes no gzip");
    }
    const auto post = [&](const char* path, const char* what) -> OrderedJson& {
        return document["paths"][path]["post"] = {{"summary", what}, {"responses", answers(what)}};
    };
    post("/api/v1/account",
         "A report of predict, bench or analyze read and written anew, as every report is written")["requestBody"] =
        body_with({{"report", {{"type", "string"}, {"description", "Which of the files it is"}}}});
    OrderedJson& measure = post("/api/v1/measure", "Measures the machine of the server and gives it as a device");
    measure["responses"]["403"] = error("Not allowed here (serve --allow-measure)");
    for (const auto& [path, what] :
         {Described{"/api/v1/models/{name}", "One model"}, Described{"/api/v1/devices/{name}", "One device"}}) {
        get(path, what);
        document["paths"][path]["get"]["responses"]["404"] = error("Nothing is called so; near names are suggested");
        document["paths"][path]["get"]["parameters"] = OrderedJson::array(
            {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
    }
    document["components"]["schemas"]["Error"] = {
        {"type", "object"},
        {"required", {"error"}},
        {"properties",
         {{"error",
           {{"type", "object"},
            {"required", {"text", "exit"}},
            {"properties",
             {{"text", {{"type", "string"}}},
              {"exit", {{"type", "integer"}}},
              {"needs", {{"type", "integer"}, {"description", "Bytes of a file that its header goes on to"}}}}}}}}}};
    return io::dump(document);
}

}  // namespace roofline::serve
