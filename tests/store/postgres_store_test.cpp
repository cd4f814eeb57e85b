#include "src/store/postgres_store.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "src/store/postgres_schema.hpp"
#include "support/eventually.hpp"
#include "tests/store/postgres_scene.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;

class postgres_subject final : public store_subject {
 public:
  postgres_subject() {
    empty_database();
    store_ = open_postgres();
  }
  actors::store& opened() override { return *store_; }
  void reopen() override {
    store_.reset();
    store_ = open_postgres();
  }
  /// A sequence does not roll back, so that the trigger fails once.
  bool fail_next_commit() override {
    auto session = sandbox_session();
    run_sql(session, "CREATE SEQUENCE failures");
    const auto made = session.run(
        "DO $body$ BEGIN EXECUTE 'CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF nextval(''leasehold.failures'') = 1 THEN RAISE EXCEPTION ''no room'' USING "
        "ERRCODE = ''53100''; END IF; RETURN NEW; END $$'; END $body$");
    EXPECT_TRUE(std::holds_alternative<storage::postgres_rows>(made));
    run_sql(session,
            "CREATE TRIGGER fails BEFORE INSERT ON batch FOR EACH ROW EXECUTE FUNCTION "
            "fail_once()");
    return true;
  }

 private:
  std::unique_ptr<actors::store> store_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance, ::testing::Values(make_subject([] {
                           return std::make_unique<postgres_subject>();
                         })));

}  // namespace
}  // namespace leasehold::tests
